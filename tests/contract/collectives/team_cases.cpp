// SPDX-License-Identifier: BSD-3-Clause
// Teams of every shape, several at a time, and calls that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/contract/collectives/collectives_case.hpp"

namespace npushmem::contract {
namespace {

// Gathers the members' numbers and expects them in the team's order.
void expect_order(CollectivesPe& pe, std::uint64_t team, const std::vector<int>& pes) {
    if (std::ranges::find(pes, pe.index()) == pes.end()) return;
    const std::int32_t own = pe.index();
    std::vector<std::int32_t> all(pes.size(), -1);
    pe.run(team, coll_call(NPUSHMEM_COLL_FCOLLECT, &own, all.data(), sizeof own));
    EXPECT_EQ(all, pes);
}

void destroy(CollectivesPe& pe, std::uint64_t team, const std::vector<int>& pes) {
    if (std::ranges::find(pes, pe.index()) != pes.end()) pe.library().destroy_team(team);
}

void teams_of_every_shape(CollectivesPe& pe) {
    std::vector<std::vector<int>> shapes{pe.all_pes(), {pe.count() - 1, 0}};
    shapes.push_back(pe.all_pes());
    std::ranges::reverse(shapes.back());
    if (pe.count() > 2) {
        shapes.push_back({0, 2});
        shapes.push_back({2, 0, 1});
    }
    for (const auto& pes : shapes) {
        const std::uint64_t team = pe.make_team(pes, 5);
        expect_order(pe, team, pes);
        destroy(pe, team, pes);
    }
}

void disjoint_teams_have_equal_numbers(CollectivesPe& pe) {
    if (pe.count() < 4) return;
    const std::vector<int> low{0, 1};
    const std::vector<int> high{2, 3};
    const std::uint64_t first = pe.make_team(low, 5);
    const std::uint64_t second = pe.make_team(high, 5);
    expect_order(pe, first, low);
    expect_order(pe, second, high);
    destroy(pe, first, low);
    destroy(pe, second, high);
}

// Odd PEs start and test the calls of two teams in another order than even ones. No PE may wait inside of a call.
void calls_of_two_teams_overlap(CollectivesPe& pe) {
    std::vector<int> reversed = pe.all_pes();
    std::ranges::reverse(reversed);
    const std::array<std::uint64_t, 2> teams{pe.make_team(pe.all_pes(), 5), pe.make_team(reversed, 6)};
    for (int round = 0; round < 20; ++round) {
        const std::int32_t own = pe.index() * 1000 + round;
        std::array<std::vector<std::int32_t>, 2> all;
        std::array<std::uint64_t, 2> requests{};
        std::array<Status, 2> started;
        for (const std::size_t step : {0U, 1U}) {
            const std::size_t i = (step + static_cast<unsigned>(pe.index())) % 2;
            all[i].assign(static_cast<std::size_t>(pe.count()), -1);
            started[i] = pe.library().start(
                teams[i], coll_call(NPUSHMEM_COLL_FCOLLECT, &own, all[i].data(), sizeof own), requests[i]);
        }
        for (const std::size_t step : {1U, 0U}) {
            const std::size_t i = (step + static_cast<unsigned>(pe.index())) % 2;
            pe.finish(requests[i], started[i]);
        }
        for (int member = 0; member < pe.count(); ++member) {
            EXPECT_EQ(all[0][static_cast<std::size_t>(member)], member * 1000 + round);
            EXPECT_EQ(all[1][static_cast<std::size_t>(member)], (pe.count() - 1 - member) * 1000 + round);
        }
    }
    for (const std::uint64_t team : teams) pe.library().destroy_team(team);
}

void two_hundred_teams_one_after_the_other(CollectivesPe& pe) {
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t team = pe.make_team(pe.all_pes(), static_cast<unsigned>(i % 4));
        if (i % 20 == 0) expect_order(pe, team, pe.all_pes());
        pe.library().destroy_team(team);
    }
}

void a_failed_exchange_fails_create_team(CollectivesPe& pe) {
    const auto made = pe.try_team(pe.all_pes(), 5, true);
    // A library that exchanges nothing has not failed.
    if (made.ok())
        pe.library().destroy_team(made.value());
    else
        EXPECT_EQ(made.status().code(), Code::aborted) << "not the code of the exchange: " << made.status().message();
    const std::uint64_t team = pe.make_team(pe.all_pes(), 5);
    expect_order(pe, team, pe.all_pes());
    pe.library().destroy_team(team);
}

void unknown_calls_are_refused(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 5);
    std::int32_t value = 7;
    std::int32_t result = 8;
    const auto expect_refused = [&](const npushmem_coll_call& call) {
        std::uint64_t request = 0;
        const Status refused = pe.library().start(team, call, request);
        EXPECT_EQ(refused.code(), Code::unsupported) << refused.message();
    };
    expect_refused(coll_call(NPUSHMEM_COLL_REDUCESCATTER + 1, &value, &result, 1));
    auto call = coll_call(NPUSHMEM_COLL_REDUCE, &value, &result, 1);
    call.operation = NPUSHMEM_COLL_PROD + 1;
    expect_refused(call);
    call.operation = NPUSHMEM_COLL_SUM;
    call.type = NPUSHMEM_COLL_C64 + 1;
    expect_refused(call);
    call.operation = NPUSHMEM_COLL_XOR;
    call.type = NPUSHMEM_COLL_F64;
    expect_refused(call);
    EXPECT_EQ(result, 8);
    expect_order(pe, team, pe.all_pes());
    pe.library().destroy_team(team);
}

// The last case: a launched PE has no other way to end a call that another one does not make.
void an_abandoned_call_keeps_nobody(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 5);
    // Static: the library may use the memory until it is closed, and a launched process closes it late.
    static std::array<std::int32_t, 64> own;
    static std::array<std::array<std::int32_t, 64>, 64> all;
    if (pe.index() != 0) {
        std::uint64_t request = 0;
        const auto at = static_cast<std::size_t>(pe.index());
        Status started = pe.library().start(
            team, coll_call(NPUSHMEM_COLL_FCOLLECT, &own[at], all[at].data(), sizeof own[at]), request);
        for (int i = 0; i < 100 && started.code() == Code::again; ++i) started = pe.library().test(request);
        EXPECT_EQ(started.code(), Code::again) << started.message();
        if (started.code() == Code::again) pe.library().abandon(request);
    }
    pe.barrier();  // a library may report that a member has destroyed its team
    pe.library().destroy_team(team);
    pe.close();
    pe.barrier();
}

}  // namespace

std::span<const CollectivesCase> collectives_team_cases() {
    static constexpr CollectivesCase cases[] = {
        {"teams_of_every_shape", "create_team: members may be any PEs in any order.", teams_of_every_shape},
        {"disjoint_teams_have_equal_numbers",
         "npushmem_coll_team: `number` is unique among the teams of a member only.", disjoint_teams_have_equal_numbers},
        {"calls_of_two_teams_overlap",
         "Waiting: `start` and `test` never wait; calls of different teams are independent.",
         calls_of_two_teams_overlap},
        {"two_hundred_teams_one_after_the_other", "destroy_team: it releases what create_team took.",
         two_hundred_teams_one_after_the_other},
        {"a_failed_exchange_fails_create_team", "create_team: after a failed exchange it returns that failure.",
         a_failed_exchange_fails_create_team},
        {"unknown_calls_are_refused",
         "start: UNSUPPORTED for unknown collectives, operations and types, without effect.",
         unknown_calls_are_refused},
        {"an_abandoned_call_keeps_nobody", "abandon: destroy_team and close do not wait for the call.",
         an_abandoned_call_keeps_nobody}};
    return cases;
}

}  // namespace npushmem::contract
