// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/row_fan_out.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Mapped = std::vector<std::vector<bool>>;

// Ranks of the same host can access each other.
Mapped hosts(const std::vector<int>& host_of) {
    Mapped mapped;
    for (const int host : host_of) {
        mapped.emplace_back();
        for (const int other : host_of) mapped.back().push_back(host == other);
    }
    return mapped;
}

TEST(RowFanOut, ThereAreNoRelaysIfAllRanksAreMapped) {
    const RowFanOut fan_out(hosts({0, 0, 0}), 1);
    EXPECT_FALSE(fan_out.sends_through_relays());
    EXPECT_THAT(fan_out.peers(), IsEmpty());
    EXPECT_FALSE(fan_out.relays_rows_of(0));
    EXPECT_EQ(fan_out.relay_of(0, std::vector{0, 1, 2}, 2), 2);
}

TEST(RowFanOut, ThereAreNoRelaysToASingleRank) {
    const RowFanOut of_two(hosts({0, 0, 1}), 0);
    EXPECT_FALSE(of_two.sends_through_relays());
    EXPECT_THAT(of_two.peers(), ElementsAre(1)) << "to which rank 2 sends";
    EXPECT_TRUE(of_two.relays_rows_of(2));
    const RowFanOut alone(hosts({0, 0, 1}), 2);
    EXPECT_TRUE(alone.sends_through_relays());
    EXPECT_THAT(alone.peers(), IsEmpty());
}

TEST(RowFanOut, RanksThatCannotAccessTheirOwnMemoryAreNoGroup) {
    const Mapped neither(2, std::vector<bool>(2, false));
    EXPECT_FALSE(RowFanOut(neither, 0).sends_through_relays());
    EXPECT_THAT(RowFanOut(neither, 0).peers(), IsEmpty());
    const Mapped one{{true, false, false}, {true, false, false}, {false, false, true}};
    EXPECT_THAT(RowFanOut(one, 0).peers(), IsEmpty());
    EXPECT_FALSE(RowFanOut(one, 2).sends_through_relays());
}

TEST(RowFanOut, OfGroupsIsThatOfRanksThatAccessTheirGroupAlone) {
    for (const std::vector<int>& groups :
         {std::vector{0, 0, 0}, std::vector{0, 0, 2}, std::vector{0, 1, 2}, std::vector{0, 0, 2, 2, 2}, {0, 1, 0, 1}}) {
        const auto ranks = static_cast<int>(groups.size());
        std::vector<int> all;
        for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
        for (int self = 0; self < ranks; ++self) {
            const RowFanOut expected(hosts(groups), self);
            const RowFanOut fan_out = RowFanOut::of_groups(groups, self);
            EXPECT_EQ(fan_out.self(), self);
            EXPECT_EQ(fan_out.peers(), expected.peers());
            EXPECT_EQ(fan_out.sends_through_relays(), expected.sends_through_relays());
            for (int rank = 0; rank < ranks; ++rank)
                for (const std::uint32_t token : {0U, 1U, 2U}) {
                    EXPECT_EQ(fan_out.relay_of(token, all, rank), expected.relay_of(token, all, rank));
                    EXPECT_EQ(fan_out.relay_from(rank, token, all), expected.relay_from(rank, token, all));
                    EXPECT_EQ(fan_out.relays_rows_of(rank), expected.relays_rows_of(rank));
                }
        }
    }
}

// Ranks 0 and 2 cannot access each other, rank 1 accesses both: three groups.
TEST(RowFanOut, RanksOfAGroupAccessTheSameRanks) {
    Mapped mapped = hosts({0, 0, 0, 1, 1});
    mapped[0][2] = mapped[2][0] = false;
    for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(RowFanOut(mapped, rank).peers(), IsEmpty());
    const RowFanOut fan_out(mapped, 3);
    EXPECT_FALSE(fan_out.sends_through_relays());
    EXPECT_THAT(fan_out.peers(), ElementsAre(4));
}

TEST(RowFanOut, ARankSendsDirectlyToAGroupOfWhichItAccessesARank) {
    Mapped mapped = hosts({0, 0, 1});
    mapped[2][0] = true;
    const RowFanOut fan_out(mapped, 2);
    EXPECT_FALSE(fan_out.sends_through_relays());
    EXPECT_FALSE(RowFanOut(mapped, 0).relays_rows_of(2));
    EXPECT_THAT(RowFanOut(mapped, 0).peers(), IsEmpty());
}

// Every rank of a token in the other group gets the row from the same relay, which is one of them.
TEST(RowFanOut, SendersAndReceiversChooseTheSameRelays) {
    const std::vector<int> host_of{0, 0, 0, 1, 1, 1, 1};
    const std::vector<std::int32_t> of_token{0, 2, 3, 5, 6};
    std::map<std::int32_t, int> tokens_of;
    for (std::uint32_t token = 0; token < 300; ++token) {
        const std::int32_t source = 1;
        const RowFanOut sender(hosts(host_of), source);
        const std::int32_t relay = sender.relay_of(token, of_token, 5);
        ++tokens_of[relay];
        for (const std::int32_t rank : {3, 5, 6}) {
            EXPECT_EQ(sender.relay_of(token, of_token, rank), relay);
            EXPECT_EQ(RowFanOut(hosts(host_of), rank).relay_from(source, token, of_token), relay);
        }
        for (const std::int32_t rank : {0, 2}) {
            EXPECT_EQ(sender.relay_of(token, of_token, rank), rank);
            EXPECT_EQ(RowFanOut(hosts(host_of), rank).relay_from(source, token, of_token), rank);
        }
    }
    EXPECT_THAT(tokens_of, ElementsAre(std::pair{3, 100}, std::pair{5, 100}, std::pair{6, 100}));
}

TEST(RowFanOut, OneRowOfATokenTravelsToEachGroup) {
    const std::vector<std::int32_t> ids{0, 1, 2, 3, 2, 3, -1, -1, 3, -1, -1, -1};
    const std::vector<float> weights(ids.size(), 1.0F);
    const RoutingToRanks routing = route_to_ranks({ids, weights}, 4, ExpertPlacement(4, 4));
    // By rank: token 0 to 0 and 1, then 0 and 1 to rank 2, then all to rank 3.
    const std::vector<std::uint32_t> slots = slots_by_rank(routing, 4);
    const auto through = [&](const std::vector<int>& host_of) {
        return rows_through_relays(RowFanOut(hosts(host_of), 0), routing, slots, 4);
    };
    EXPECT_THAT(through({0, 0, 1, 1}), ElementsAre(0, 0, 0, 1, 1, 0, 0));
    EXPECT_THAT(through({0, 0, 0, 0}), IsEmpty());
}

// A layer on hosts of equal numbers of ranks.
struct HostsCase {
    CaseShape shape;
    int ranks_per_host = 2;
    bool fixed = false;
    bool audit = false;

    [[nodiscard]] CombineConfig config() const {
        CombineConfig config = layer_config(shape, 133);
        config.rows_per = RowsPer::rank;
        config.audit = audit;
        if (fixed) config.capacity = fixed_slots;
        return config;
    }
    [[nodiscard]] bool share_host(int rank, int other) const { return rank / ranks_per_host == other / ranks_per_host; }
    // The rows of a rank's tokens for other hosts, each once.
    [[nodiscard]] int rows_to_send(const Routing& routing, int rank) const {
        const ExpertPlacement placement(shape.experts, shape.ranks);
        const RankRouting own = routing.rank(static_cast<std::size_t>(rank));
        const auto top_k = static_cast<std::size_t>(shape.top_k);
        int rows = 0;
        for (std::size_t token = 0; token < own.tokens(shape.top_k); ++token) {
            std::set<int> others;
            for (const std::int32_t id : own.experts.subspan(token * top_k, top_k))
                if (id >= 0 && !share_host(rank, placement.rank_of(id)))
                    others.insert(placement.rank_of(id) / ranks_per_host);
            rows += static_cast<int>(others.size());
        }
        return rows;
    }
};

constexpr int rows_of_hidden_133 = 266;  // bytes

void expect_one_row_per_host(const HostsCase& c) {
    Routing routing = random_routing(c.shape);
    use_inexact_weights(routing);
    LayerFixture bench(c.shape.ranks, c.config(), 3, /*window=*/false);
    bench.run([&](LayerPe& pe) {
        for (int other = 0; other < c.shape.ranks; ++other)
            if (!c.share_host(pe.pe(), other)) pe.fabric().unmap(other);
        ASSERT_TRUE(pe.open()) << pe.error();
        int sent = 0;
        const auto expect_sent = [&] {
            sent += c.rows_to_send(routing, pe.pe());
            EXPECT_EQ(pe.memory().puts_of(rows_of_hidden_133), sent);
        };
        for (std::uint64_t call = 0; call < 4; ++call) {
            const bool cached = call % 2 == 1;
            ASSERT_TRUE(cached ? pe.dispatch_cached(routing, call) : pe.dispatch(routing, call)) << pe.error();
            ASSERT_EQ(pe.difference(routing, call), "") << "call " << call;
            expect_sent();
        }
        pe.run_experts(routing, 3);
        ASSERT_TRUE(pe.combine()) << pe.error();
        EXPECT_EQ(pe.output_difference(routing), "");
    });
}

TEST(RowFanOut, ARowCrossesTheNetworkOncePerHost) {
    for (const bool fixed : {false, true}) {
        for (const bool audit : {false, true}) {
            SCOPED_TRACE(fmt::format("fixed {}, audit {}", fixed, audit));
            expect_one_row_per_host({{4, 8, 4, 9, 51}, 2, fixed, audit});
            expect_one_row_per_host({{6, 13, 8, 9, 52, 0.3}, 3, fixed, audit});
            expect_one_row_per_host({{5, 9, 3, 7, 53}, 3, fixed, audit});
        }
    }
}

// Without a barrier between the calls, ranks drift as far as the protocol allows.
TEST(RowFanOut, ManyCallsInARowWithTheRoutingChanged) {
    for (const bool fixed : {false, true}) {
        const HostsCase c{{4, 8, 6, 3, 54, 0.4}, 2, fixed, false};
        LayerFixture bench(c.shape.ranks, c.config(), 2, /*window=*/false);
        bench.run([&](LayerPe& pe) {
            for (int other = 0; other < c.shape.ranks; ++other)
                if (!c.share_host(pe.pe(), other)) pe.fabric().unmap(other);
            ASSERT_TRUE(pe.open()) << pe.error();
            for (std::uint32_t call = 0; call < 60; ++call) {
                CaseShape now = c.shape;
                now.seed += call;
                now.empty_rank = static_cast<std::int32_t>(call % 7);
                Routing routing = random_routing(now);
                use_inexact_weights(routing);
                ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
            }
        });
    }
}

// PE 2 fails on its way to its rows. The others learn of it in their next call, and all can go on after a reset.
void expect_failure_of_pe_2(const std::function<void(fakes::ThreadMemory&, bool)>& set_fault,
                            const std::string& error) {
    HostsCase c{{4, 8, 4, 9, 55}, 2};
    c.shape.absent = 0;
    const Routing routing = random_routing(c.shape);
    CombineConfig config = c.config();
    config.timeout = std::chrono::milliseconds(200);
    LayerFixture bench(c.shape.ranks, config, 3, /*window=*/false);
    bench.run([&](LayerPe& pe) {
        for (int other = 0; other < c.shape.ranks; ++other)
            if (!c.share_host(pe.pe(), other)) pe.fabric().unmap(other);
        ASSERT_TRUE(pe.open()) << pe.error();
        pe.barrier();
        set_fault(pe.memory(), true);
        EXPECT_EQ(pe.dispatch(routing, 0), pe.pe() != 2) << pe.error();
        EXPECT_THAT(pe.error(), pe.pe() == 2 ? HasSubstr(error) : HasSubstr(""));
        set_fault(pe.memory(), false);
        pe.barrier();
        EXPECT_FALSE(pe.dispatch(routing, 1));
        EXPECT_THAT(pe.error(), HasSubstr(error)) << "the cause, on every PE";
        pe.barrier();
        ASSERT_TRUE(pe.reset()) << pe.error();
        ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, 2));
    });
}

TEST(RowFanOut, APeerThatDoesNotSayThatItHasItsRows) {
    expect_failure_of_pe_2(
        [](fakes::ThreadMemory& memory, bool faulty) {
            if (memory.my_pe() == 3) memory.lose_signals_to(faulty ? 2 : -1);
        },
        "dispatch, call 1: rank 2 waits for the arrival of the rows of other hosts at rank 3");
}

TEST(RowFanOut, ARowThatCannotBeCopied) {
    expect_failure_of_pe_2(
        [](fakes::ThreadMemory& memory, bool faulty) {
            if (memory.my_pe() == 2) memory.fail_fetches(faulty ? Status{Code::peer_dead, "gone"} : Status{});
        },
        "gone");
}

// Rank 0 of two hosts of two sends the row of token 1 to rank 3, for rank 2 too.
TEST(RowFanOut, ARelayWithoutTheRowIsAnError) {
    fakes::ThreadWorld world(4, 1 << 16);
    fakes::ThreadMemory memory(world, 2);
    fakes::ThreadMemory relay(world, 3);
    const DispatchLayout layout(4, 4, Rows{4}, Bytes{64}, 2);
    CombineConfig config;
    config.experts = 4;
    config.top_k = 2;
    DispatchWork work;
    work.layout = layout;
    work.region = memory.allocate(layout.total()).value();
    std::byte* const at_relay = relay.allocate(layout.total()).value();
    work.epoch = 1;
    work.top_k = 2;
    std::vector<std::uint64_t> totals{0, 0, 1, 1};
    work.tables.totals = totals.data();
    DispatchWork::counts_of(work.region + layout.record(1, 0).value())[3] = 1;
    ReceivedRows received{empty_plan(ExpertPlacement(4, 4), 2), {{2, 1.0F}, {3, 1.0F}}, {}};
    received.plan.rows = Rows{1};
    received.plan.length_table[0] = 1;
    received.plan.slots = {2};
    const RowFanOut fan_out(hosts({0, 0, 1, 1}), 2);
    auto* const slot = reinterpret_cast<std::uint32_t*>(at_relay + layout.slots().value());
    *slot = 3;
    const auto found = find_relayed_rows(fan_out, memory, work, received, config);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_THAT(found.value(), ElementsAre(RelayedRow{0, 0, 3}));
    *slot = 5;
    EXPECT_THAT(find_relayed_rows(fan_out, memory, work, received, config).status().message(),
                HasSubstr("rank 3 should have got the row of token 1 of rank 0 for this host, but has not"));
}

}  // namespace
}  // namespace npushmem::moe
