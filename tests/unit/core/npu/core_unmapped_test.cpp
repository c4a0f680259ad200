// SPDX-License-Identifier: BSD-3-Clause
// Kernels and PEs that are not mapped: every operation with a PE argument reaches them, scalar accesses fail with the
// remedy, other cores run meanwhile, and every wait ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npushmem/npu/checked_hooks.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::ArrayRemote;
using fakes::on_all_pes;
using fakes::SymmetricArray;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// A PE that reaches the others only through its transport.
struct FarPe {
    FarPe(SymmetricArray& array, int me, const DeviceConfig& config = {}) : far(array, me), pe(array, me, config) {
        pe.fabric.unmap_others(far);
    }
    template <class Kernel>
    Status run(const LaunchConfig& config, Kernel&& kernel) const {
        return pe.run(config, std::forward<Kernel>(kernel));
    }

    ArrayRemote far;
    ArrayPe pe;
};

struct Unmapped : testing::Test {
    Status on_one_core(const FarPe& from, const std::function<void(Core&)>& kernel) {
        return from.run(1, [&](Core& core) {
            if (core.index() == 0) kernel(core);
        });
    }

    SymmetricArray array{3, 4096};
    std::uint64_t* mine = array.at<std::uint64_t>(0);
    std::uint64_t* theirs = array.at<std::uint64_t>(1);
};

TEST_F(Unmapped, OperationsThatTakeAPeReachIt) {
    const FarPe pe(array, 0, {.blocks = 1, .vector_cores = 2});
    theirs[20] = 5;
    auto* narrow = reinterpret_cast<std::int32_t*>(mine + 40);
    const Status status = on_one_core(pe, [&](Core& core) {
        mine[0] = 11;
        core.put(mine + 8, mine, 1, 1);
        core.get(mine + 16, mine + 20, 1, 1);
        EXPECT_EQ(mine[16], 5U);
        core.signal_set_on(mine + 24, 7, 1);
        core.signal_add_on(mine + 24, 2, 1);
        EXPECT_EQ(core.signal_fetch_on(mine + 24, 1), 9U);
        EXPECT_EQ(core.signal_wait_until_on(mine + 24, Compare::greater, 8, 1), 9U);
        core.put_signal(mine + 9, mine, 1, mine + 32, 3, 1);
        EXPECT_EQ(core.atomic_fetch_add_on(mine + 24, 1, 1), 9U);
        EXPECT_EQ(core.atomic_swap_on(mine + 24, 100, 1), 10U);
        EXPECT_EQ(core.atomic_compare_swap_on(mine + 24, 100, 200, 1), 100U);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, -3, 1), 0);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, 1, 1), -3);
        // Its own memory stays mapped.
        EXPECT_EQ(core.atomic_fetch_add_on(mine + 25, 4, 0), 0U);
        EXPECT_EQ(core.load(core.remote(mine + 25, 0)), 4U);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(theirs[8], 11U);
    EXPECT_EQ(theirs[9], 11U);
    EXPECT_EQ(theirs[24], 200U);
    EXPECT_EQ(theirs[32], 3U);
}

TEST_F(Unmapped, TheEndOfAKernelCompletesItsOperations) {
    const FarPe pe(array, 0, {.blocks = 1, .vector_cores = 1});
    ASSERT_TRUE(pe.run(1, [&](Core& core) { core.put(mine + 8, mine, 1, 2); }).ok());
    EXPECT_THAT(pe.far.calls, ElementsAre("put 2", "quiet"));
}

// The put completes only after the other core has run.
TEST_F(Unmapped, OtherCoresRunWhileOneWaits) {
    FarPe pe(array, 0, {.blocks = 2, .vector_cores = 1, .launch_timeout = std::chrono::seconds(60)});
    bool opened = false;
    pe.far.gate = [&] { return opened; };
    std::vector<int> order;
    const Status status = pe.run(2, [&](Core& core) {
        if (core.index() == 0) core.put(mine + 8, mine, 1, 1);
        opened = opened || core.index() == 1;
        order.push_back(core.index());
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_THAT(order, ElementsAre(1, 0));
}

TEST_F(Unmapped, ScalarAccessFailsWithTheReasonAndTheRemedy) {
    const FarPe pe(array, 0);
    const Status scalar = on_one_core(pe, [&](Core& core) { static_cast<void>(core.load(core.remote(mine, 1))); });
    EXPECT_EQ(scalar.code(), Code::unreachable);
    EXPECT_THAT(scalar.message(), HasSubstr("of PE 1 cannot be loaded, stored or copied from PE 0: that PE's memory is "
                                            "not mapped here; use put, get, put_signal, signal_*_on and atomic_*_on"));
    EXPECT_THAT(scalar.message(), HasSubstr("core_unmapped_test.cpp:"));
    const Status copied = on_one_core(
        pe, [&](Core& core) { core.data_copy(core.ub_alloc<std::uint64_t>(8), core.remote(gm(mine, 8), 1), 8); });
    EXPECT_EQ(copied.code(), Code::unreachable);
    std::uint64_t local = 0;
    const Status elsewhere = on_one_core(pe, [&](Core& core) { core.put(&local, mine, 1, 1); });
    EXPECT_EQ(elsewhere.code(), Code::not_symmetric);
    EXPECT_THAT(elsewhere.message(), HasSubstr("not in symmetric memory"));
    const Status nobody = on_one_core(pe, [&](Core& core) { core.signal_set_on(mine, 1, 3); });
    EXPECT_EQ(nobody.code(), Code::range);
    const Status crooked = on_one_core(pe, [&](Core& core) {
        auto* odd = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(mine) + 4);
        core.atomic_fetch_add_on(odd, 1, 1);
    });
    EXPECT_EQ(crooked.code(), Code::argument);
    EXPECT_THAT(crooked.message(), HasSubstr("[H11]"));
}

TEST_F(Unmapped, ATransportFailureEndsTheLaunchButNotTheDevice) {
    FarPe pe(array, 0);
    pe.far.failure = {Code::peer_dead, "transport far: PE 1 is gone"};
    const Status failed = on_one_core(pe, [&](Core& core) { core.put(mine + 8, mine, 1, 1); });
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_THAT(failed.message(), HasSubstr("put on PE 1: transport far: PE 1 is gone"));
    pe.far.failure = {};
    EXPECT_TRUE(on_one_core(pe, [&](Core& core) { core.put(mine + 8, mine, 1, 1); }).ok());
}

TEST_F(Unmapped, WaitsEndAtTheirDeadline) {
    FarPe pe(array, 0, {.blocks = 2, .vector_cores = 1, .wait_timeout = milliseconds(3)});
    const Status polled = on_one_core(pe, [&](Core& core) { core.signal_wait_until_on(mine, Compare::equal, 5, 1); });
    EXPECT_EQ(polled.code(), Code::timeout);
    EXPECT_THAT(polled.message(), HasSubstr("from PE 1 to be == 5, last saw 0"));
    // The deadline is checked after each poll, because a poll may take long.
    FarPe hasty(array, 0, {.blocks = 1, .vector_cores = 1, .wait_timeout = std::chrono::nanoseconds(1)});
    const Status once = on_one_core(hasty, [&](Core& core) { core.signal_wait_until_on(mine, Compare::equal, 5, 1); });
    EXPECT_EQ(once.code(), Code::timeout);
    EXPECT_EQ(std::ranges::count(hasty.far.calls, "fetch 1"), 1);
    pe.far.gate = [] { return false; };
    const Status stuck = on_one_core(pe, [&](Core& core) { core.put(mine + 8, mine, 1, 1); });
    EXPECT_EQ(stuck.code(), Code::timeout);
    EXPECT_THAT(stuck.message(), HasSubstr("waited for put to PE 1 to complete"));
    // The wait also ends when another failure aborts the launch.
    const Status other = pe.run(2, [&](Core& core) {
        if (core.index() == 0) core.put(mine + 8, mine, 1, 1);
        throw std::runtime_error("on purpose");
    });
    EXPECT_EQ(other.code(), Code::aborted);
    EXPECT_THAT(other.message(), HasSubstr("the kernel threw: on purpose"));
}

TEST(UnmappedBarriers, NobodyLeavesBeforeAllHaveEntered) {
    constexpr int pes = 4;
    for (const char* text : {"v1", "v2:3", "v3"}) {
        SymmetricArray array(pes, sizeof(BarrierState));
        const BarrierChoice choice = BarrierChoice::parse(text).value();
        std::atomic<int> entered{0};
        on_all_pes(pes, [&](int me) {
            const FarPe pe(array, me, {.blocks = 2, .vector_cores = 1, .launch_timeout = std::chrono::seconds(60)});
            const Status status = pe.run(2, [&](Core& core) {
                for (int round = 1; round <= 5; ++round) {
                    entered.fetch_add(1);
                    barrier_with_choice(core, choice, {0, 1, pes}, array.at<BarrierState>(me));
                    EXPECT_GE(entered.load(), round * pes * 2) << text;
                }
            });
            EXPECT_TRUE(status.ok()) << text << ": " << status.message();
        });
    }
}

// Checked mode checks the order of this PE's operations on PEs whose memory it cannot see.
TEST_F(Unmapped, CheckedModeKeepsAndChecksTheOrder) {
    for (const char* schedule : {"eager", "lazy", "random:4"}) {
        FarPe checked(array, 0, {.blocks = 1, .vector_cores = 1});
        LaunchConfig config(1);
        config.hooks = checked_hooks(Schedule::parse(schedule).value(), checked.pe.fabric).value();
        const auto reuse_of_source = [&](bool flag) {
            return checked.run(config, [&](Core& core) {
                core.put(mine + 8, mine, 8, 1);
                if (flag) core.pipe_barrier<Pipe::all>();
                core.get(mine, mine + 16, 8, 2);
            });
        };
        const Status wrong = reuse_of_source(false);
        EXPECT_EQ(wrong.code(), Code::protocol) << schedule;
        EXPECT_THAT(wrong.message(), HasSubstr("core_unmapped_test.cpp:"));
        EXPECT_THAT(wrong.message(), HasSubstr("get on PE 0 core 0 pipe MTE2"));
        EXPECT_THAT(wrong.message(), HasSubstr("against put on PE 0 core 0 pipe MTE3"));
        EXPECT_TRUE(reuse_of_source(true).ok());
        checked.far.calls.clear();
        const Status whole = checked.run(config, [&](Core& core) {
            core.put_signal(mine + 8, mine, 8, mine + 16, 1, 1);
            EXPECT_EQ(core.atomic_fetch_add_on(mine + 24, 1, 2), 0U);
            EXPECT_EQ(core.atomic_fetch_add_on(mine + 24, ~std::uint64_t{0}, 2), 1U);
            EXPECT_EQ(core.signal_wait_until_on(mine + 16, Compare::equal, 1, 1), 1U);
        });
        EXPECT_TRUE(whole.ok()) << whole.message();
        const auto call = [&](const char* name) { return std::ranges::find(checked.far.calls, name); };
        EXPECT_LT(call("put 1"), call("fence"));
        EXPECT_LT(call("fence"), call("set 1"));
        EXPECT_EQ(theirs[16], 1U);
        theirs[16] = 0;
    }
}

}  // namespace
}  // namespace npushmem::npu
