// SPDX-License-Identifier: BSD-3-Clause
// What the contract cannot know: the order of combination, and the texts of this library's failures. Members are
// threads.
#include "mine_collectives.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "mine_reduction.hpp"
#include "npushmem/plugin/collectives_export.hpp"
#include "npushmem/testing/fake_bootstrap.hpp"

namespace mine_plugin {
namespace {

using npushmem::fakes::FakeBootstrap;
using npushmem::fakes::FakeJob;
using ::testing::HasSubstr;

// One member of a team of all.
struct Member {
    int index;
    MineCollectives library;
    FakeBootstrap others;
    std::uint64_t team = 0;

    Status run(const npushmem_coll_call& call) {
        std::uint64_t request = 0;
        Status done = library.start(team, call, request);
        while (done.code() == Code::again) {
            std::this_thread::yield();
            done = library.test(request);
        }
        return done;
    }
};

std::int32_t allgather(void* context, const void* send, std::uint64_t bytes, void* receive, npushmem_error* error) {
    auto& others = *static_cast<FakeBootstrap*>(context);
    const auto all = bytes * static_cast<std::uint64_t>(others.nranks());
    const Status done =
        others.allgather({static_cast<const std::byte*>(send), bytes}, {static_cast<std::byte*>(receive), all});
    return npushmem::report(done, error);
}

void run_members(int size, const std::function<void(Member&)>& body) {
    const auto job = std::make_shared<FakeJob>(size);
    std::vector<int> pes(static_cast<std::size_t>(size));
    std::iota(pes.begin(), pes.end(), 0);
    std::vector<std::jthread> threads;
    for (int index = 0; index < size; ++index)
        threads.emplace_back([&, index] {
            Member member{index, {}, FakeBootstrap(job, index)};
            npushmem_coll_team team{};
            team.struct_size = sizeof team;
            team.size = size;
            team.index = index;
            team.pes = pes.data();
            team.context = &member.others;
            team.allgather = allgather;
            const auto made = member.library.create_team(team);
            ASSERT_TRUE(made.ok()) << made.status().message();
            member.team = made.value();
            body(member);
        });
}

TEST(MineCollectives, CombinesInTheOrderOfMembers) {
    run_members(4, [](Member& member) {
        const std::vector<float> values{1e8F, 1.0F, -1e8F, 1.0F};
        float sum = 0;
        npushmem_coll_call call{};
        call.struct_size = sizeof call;
        call.collective = NPUSHMEM_COLL_REDUCE;
        call.operation = NPUSHMEM_COLL_SUM;
        call.type = NPUSHMEM_COLL_F32;
        call.source = &values[static_cast<std::size_t>(member.index)];
        call.dest = &sum;
        call.count = 1;
        const Status done = member.run(call);
        ASSERT_TRUE(done.ok()) << done.message();
        EXPECT_EQ(sum, ((values[0] + values[1]) + values[2]) + values[3]);
    });
}

TEST(MineCollectives, AMemberThatLeavesIsNamed) {
    run_members(3, [](Member& member) {
        npushmem_coll_call barrier{};
        barrier.struct_size = sizeof barrier;
        barrier.collective = NPUSHMEM_COLL_BARRIER;
        if (member.index == 1) {
            member.library.destroy_team(member.team);
        } else {
            const Status failed = member.run(barrier);
            EXPECT_EQ(failed.code(), Code::system);
            EXPECT_THAT(failed.message(), HasSubstr("member 1"));
        }
        EXPECT_TRUE(member.others.barrier().ok());  // the others stay until all have seen it
    });
}

TEST(MineReduction, WrapsIntegersAndKeepsNan) {
    std::int16_t small = std::numeric_limits<std::int16_t>::max();
    const std::int16_t two = 2;
    combine(NPUSHMEM_COLL_SUM, NPUSHMEM_COLL_I16, &small, &two, 1);
    EXPECT_EQ(small, std::numeric_limits<std::int16_t>::min() + 1);
    for (std::uint32_t operation = NPUSHMEM_COLL_MAX; operation <= NPUSHMEM_COLL_PROD; ++operation)
        for (const bool first : {false, true}) {
            double a = first ? std::numeric_limits<double>::quiet_NaN() : 3;
            const double b = first ? 3 : std::numeric_limits<double>::quiet_NaN();
            combine(operation, NPUSHMEM_COLL_F64, &a, &b, 1);
            EXPECT_TRUE(std::isnan(a)) << operation;
        }
}

}  // namespace
}  // namespace mine_plugin
