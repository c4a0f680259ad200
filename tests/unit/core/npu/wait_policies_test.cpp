// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/wait_policies.hpp"

#include <gmock/gmock.h>

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

struct WaiterPolicyTest : ::testing::Test {
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{WaitBudget{}, os, counters};
    KeepingObserver observer;
};

TEST_F(WaiterPolicyTest, PassesTheLongWaitOfACoreToTheObserver) {
    WaiterPolicy policy(waiter, os, nullptr, 4, nullptr, &observer);
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
    WaiterPolicy policy(waiter, os, nullptr, 4, nullptr, &observer);
    policy.observe(this, {"the other cores of the launch", nullptr, -1, {}, os.now()});
    EXPECT_EQ(observer.needs.count, 4);
    EXPECT_EQ(observer.call, "a kernel");
}

TEST_F(WaiterPolicyTest, NeedsNoObserver) {
    WaiterPolicy policy(waiter, os, nullptr, 4);
    policy.observe(this, {});
    policy.end_observation(this);
    EXPECT_EQ(observer.observed, nullptr);
}

}  // namespace
}  // namespace npushmem::npu
