// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/team_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/npu/runner.hpp"
#include "core/npu/wait_policies.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem {
namespace {

using fakes::ArrayFabric;
using fakes::ArrayRemote;
using fakes::SymmetricArray;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int pes = 6;

// Reports the PE that is asked for, and keeps what is observed.
class NamingPolicy final : public npu::WaitPolicy {
public:
    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override {
        return policy_.until(ready, timeout);
    }
    void pause(std::uint64_t round) override { policy_.pause(round); }
    [[nodiscard]] Status peer_status(const npu::PeGroup& pes) const override {
        for (int i = 0; i < pes.count; ++i)
            if (pes.at(i) == dead) return {Code::peer_dead, "PE " + std::to_string(dead)};
        return pes.count == 0 && dead == any ? Status{Code::peer_dead, "any PE"} : Status{};
    }
    void observe(const void* /*id*/, const npu::LongWait& wait) override { observed.push_back(wait.pe); }

    static constexpr int any = -1;
    int dead = -2;
    std::vector<int> observed;

private:
    npu::detail::StandaloneWaitPolicy policy_{pes};
};

struct TeamDeviceTest : ::testing::Test {
    SymmetricArray array{pes, 4096};
    NamingPolicy policy;

    // The team's device of this PE, which may map no other.
    Status run(ArrayFabric& fabric, const Members& members, const std::function<void(npu::Core&)>& kernel) {
        npu::DeviceConfig config;
        config.blocks = 1;
        config.vector_cores = 1;
        auto team = TeamDevice::create(config, fabric, policy, members);
        EXPECT_TRUE(team.ok()) << team.status().message();
        if (Status launched = npu::launch(team.value()->device().default_stream(), 1, kernel); !launched.ok())
            return launched;
        return team.value()->device().synchronize();
    }
};

TEST_F(TeamDeviceTest, NumbersPesAsTheMembers) {
    for (const bool windowed : {true, false})
        for (const auto& list : {std::vector{1, 3, 5}, std::vector{5, 3, 0}, std::vector{0, 1, 3}}) {
            const int rank = static_cast<int>(std::ranges::find(list, 3) - list.begin());
            ArrayFabric fabric(array, 3, windowed);
            const Status ran = run(fabric, Members::listed(list), [&](npu::Core& core) {
                EXPECT_EQ(core.my_pe(), rank);
                EXPECT_EQ(core.n_pes(), 3);
                for (int to = 0; to < 3; ++to)
                    core.signal_set_on(array.at<std::uint64_t>(3), static_cast<std::uint64_t>(to) + 10, to);
            });
            EXPECT_TRUE(ran.ok()) << ran.message();
            for (std::size_t to = 0; to < 3; ++to) EXPECT_EQ(*array.at<std::uint64_t>(list[to]), to + 10);
        }
}

TEST_F(TeamDeviceTest, HasAWindowOnlyForMembersAtEqualDistancesInsideThatOfTheWorld) {
    const ArrayFabric fabric(array, 3);
    const npu::Window evens = TeamFabric(fabric, Members::listed({1, 3, 5})).window();
    EXPECT_EQ(evens.pe_count, 3);
    EXPECT_EQ(evens.my_pe, 1);
    const auto own = reinterpret_cast<std::uintptr_t>(array.base(3));
    EXPECT_EQ(evens.remote(own + 8, 0), reinterpret_cast<std::uintptr_t>(array.base(1)) + 8);
    EXPECT_EQ(TeamFabric(fabric, Members::listed({0, 1, 3})).window().pe_count, 0);
    EXPECT_EQ(TeamFabric(ArrayFabric(array, 3, false), Members::listed({1, 3, 5})).window().pe_count, 0);
}

TEST_F(TeamDeviceTest, ReachesMembersThatAreNotMappedByTheirNumbersInTheWorld) {
    ArrayFabric fabric(array, 3);
    ArrayRemote remote(array, 3);
    fabric.unmap_others(remote);
    const Members members = Members::listed({4, 3, 0});
    std::uint64_t before = 0;
    *array.at<std::uint64_t>(0) = 7;
    const Status ran = run(fabric, members, [&](npu::Core& core) {
        auto* const word = array.at<std::uint64_t>(3);
        *array.at<std::uint64_t>(3, 64) = 21;
        core.put(array.at<std::uint64_t>(3, 8), array.at<std::uint64_t>(3, 64), 1, 0);
        core.signal_add_on(word, 5, 2);
        core.quiet();
        core.get(array.at<std::uint64_t>(3, 128), word, 1, 2);
        before = *array.at<std::uint64_t>(3, 128);
    });
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_EQ(*array.at<std::uint64_t>(4, 8), 21U);
    EXPECT_EQ(before, 12U);
    EXPECT_THAT(remote.calls, Not(IsEmpty()));
}

TEST_F(TeamDeviceTest, AWaitForAMemberFailsByItsDeath) {
    ArrayFabric fabric(array, 3);
    policy.dead = 5;
    const Status ran = run(fabric, Members::listed({3, 5}), [&](npu::Core& core) {
        core.signal_wait_until(array.at<std::uint64_t>(3), npu::Compare::equal, 1, 1);
    });
    EXPECT_EQ(ran.code(), Code::peer_dead);
    EXPECT_THAT(ran.message(), HasSubstr("PE 5"));
}

TEST_F(TeamDeviceTest, ReportsLongWaitsByNumbersOfTheWorld) {
    TeamWaitPolicy team(policy, Members::listed({4, 0}));
    npu::LongWait wait;
    for (const int pe : {-1, 0, 1}) {
        wait.pe = pe;
        team.observe(this, wait);
    }
    EXPECT_THAT(policy.observed, ElementsAre(-1, 4, 0));
    policy.dead = 4;
    EXPECT_EQ(team.peer_status(npu::PeGroup::one(0)).code(), Code::peer_dead);
    EXPECT_TRUE(team.peer_status(npu::PeGroup::one(1)).ok());
    EXPECT_EQ(team.peer_status({.count = 2}).code(), Code::peer_dead);
    EXPECT_TRUE(team.peer_status({}).ok());
    policy.dead = NamingPolicy::any;
    EXPECT_EQ(team.peer_status({}).code(), Code::peer_dead);
}

}  // namespace
}  // namespace npushmem
