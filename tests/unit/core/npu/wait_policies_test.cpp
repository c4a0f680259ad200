// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/wait_policies.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "core/base/parking.hpp"

namespace npushmem::npu {
namespace {

class KeepingObserver final : public WaitObserver {
public:
    void observe(const void* id, const WaitFor& wait, std::chrono::nanoseconds began,
                 std::chrono::nanoseconds now) override {
        observed = id;
        call = wait.call;
        what = wait.what;
        needs = wait.needs;
        object = wait.object;
        length = now - began;
    }
    void end(const void* id) override { ended = id; }

    const void* observed = nullptr;
    const void* ended = nullptr;
    std::string call;
    std::string what;
    PeRange needs;
    const void* object = nullptr;
    std::chrono::nanoseconds length{0};
};

PeRange any_of_four() { return {0, 1, 4}; }

class DeadPes final : public Liveness {
public:
    explicit DeadPes(int dead) : dead_(dead) {}
    std::optional<int> find_dead(const PeRange& pes) override {
        for (int i = 0; i < pes.count; ++i)
            if (pes.at(i) == dead_) return dead_;
        return std::nullopt;
    }

private:
    int dead_;
};

struct WaiterPolicyTest : ::testing::Test {
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{WaitBudget{}, os, counters};
    KeepingObserver observer;
};

TEST_F(WaiterPolicyTest, PassesTheLongWaitOfACoreToTheObserver) {
    WaiterPolicy policy(waiter, os, nullptr, any_of_four, nullptr, &observer);
    const std::uint64_t word = 0;
    const auto began = os.now() - std::chrono::seconds(3);
    policy.observe(this, {"a value in symmetric memory", &word, 2, SourceLocation::current(), began});
    EXPECT_EQ(observer.observed, this);
    EXPECT_THAT(observer.call, ::testing::StartsWith("a kernel at wait_policies_test.cpp:"));
    EXPECT_EQ(observer.what, "a value in symmetric memory");
    EXPECT_EQ(observer.needs.at(0), 2);
    EXPECT_EQ(observer.needs.count, 1);
    EXPECT_EQ(observer.object, &word);
    EXPECT_GE(observer.length, std::chrono::seconds(3));
    policy.end_observation(this);
    EXPECT_EQ(observer.ended, this);
}

TEST_F(WaiterPolicyTest, ReportsThatAnyPeMayEndTheWait) {
    WaiterPolicy policy(waiter, os, nullptr, any_of_four, nullptr, &observer);
    policy.observe(this, {"the other cores of the launch", nullptr, -1, {}, os.now()});
    EXPECT_EQ(observer.needs.count, 4);
    EXPECT_EQ(observer.call, "a kernel");
}

// As of a PE whose death the program knows.
TEST_F(WaiterPolicyTest, AnUnnamedPeIsOneOfThoseThatAreAwaited) {
    DeadPes dead(3);
    PeRange awaited{0, 1, 4};
    const WaiterPolicy policy(waiter, os, &dead, [&awaited] { return awaited; });
    EXPECT_EQ(policy.peer_status({}).code(), Code::peer_dead);
    awaited.count = 3;
    EXPECT_TRUE(policy.peer_status({}).ok());
    EXPECT_EQ(policy.peer_status(PeGroup::one(3)).code(), Code::peer_dead);
    EXPECT_TRUE(policy.peer_status(PeGroup::one(2)).ok());
    const std::vector<int> listed{0, 2, 3};
    EXPECT_EQ(policy.peer_status({.count = 3, .list = listed.data()}).code(), Code::peer_dead);
    EXPECT_TRUE(policy.peer_status({.count = 2, .list = listed.data()}).ok());
}

TEST_F(WaiterPolicyTest, NeedsNoObserver) {
    WaiterPolicy policy(waiter, os, nullptr, any_of_four);
    policy.observe(this, {});
    policy.end_observation(this);
    EXPECT_EQ(observer.observed, nullptr);
}

}  // namespace
}  // namespace npushmem::npu
