// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/awaited_bytes.hpp"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "core/base/wait.hpp"
#include "core/memory/control_block.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

using namespace std::chrono_literals;
using npushmem::testing::FakeWaitOs;
using ::testing::ElementsAre;

// Longer than any wait for a writer, shorter than the time limit of a test.
constexpr std::chrono::seconds too_long{30};

// An announced wait sleeps until it is woken, whatever the limit.
class SoundSleep final : public WaitOs {
public:
    std::chrono::nanoseconds now() override { return os_.now(); }
    std::chrono::nanoseconds run_time() override { return os_.run_time(); }
    void yield() override { os_.yield(); }
    void sleep(std::chrono::nanoseconds time) override { os_.sleep(time); }
    void sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds) override {
        os_.sleep_on(word, expected, too_long);
    }

private:
    SystemWaitOs os_;
};

struct AwaitedBytesTest : ::testing::Test {
    alignas(ControlBlock) std::byte slice[control_bytes + 64] = {};
    AwaitedBytes& awaited = reinterpret_cast<ControlBlock*>(slice)->awaited;
    std::uint64_t& flag = *reinterpret_cast<std::uint64_t*>(slice + control_bytes);
    std::atomic<std::uint32_t> host_sleepers{0};
    WaitCounters counters;

    AwaitedBytesParking parking() { return {host_sleepers, awaited, control_bytes, sizeof flag}; }
    AwaitedBytesParking other_parking() { return {host_sleepers, awaited, 64, 8}; }
    void wake(const void* target, std::uint64_t bytes) {
        if (host_sleepers.load(std::memory_order_relaxed) != 0) wake_sleepers_in(slice, target, bytes);
    }
    void store(std::uint64_t value) {
        std::atomic_ref(flag).store(value, std::memory_order_release);
        wake(&flag, sizeof flag);
    }
    void wait_for(std::uint64_t value, WaitOs& os) {
        AwaitedBytesParking own = parking();
        const Waiter waiter(WaitBudget{}, os, counters);
        EXPECT_EQ(waiter.until([&] { return std::atomic_ref(flag).load(std::memory_order_acquire) == value; },
                               {.parking = &own}),
                  Code::ok);
    }
    void await_sleeper() const {
        while (awaited.sleepers.load() == 0) std::this_thread::yield();  // the last step of an announcement
    }
    // Announces, checks and sleeps once, as a Waiter does.
    static void sleep_once(AwaitedBytesParking& own, WaitOs& os, std::chrono::nanoseconds longest = 1s) {
        own.announce();
        own.park(os, longest);
        own.retract();
    }
};

TEST_F(AwaitedBytesTest, TheWriterWakesTheSleeper) {
    SoundSleep os;
    const auto begin = os.now();
    std::thread sleeper([&] { wait_for(1, os); });
    await_sleeper();
    store(1);
    sleeper.join();
    EXPECT_LT(os.now() - begin, too_long);
    EXPECT_EQ(awaited.sleepers.load(), 0U);
    EXPECT_EQ(host_sleepers.load(), 0U);
}

TEST_F(AwaitedBytesTest, AStoreWithoutASleeperWakesNobody) {
    store(1);
    EXPECT_EQ(awaited.wakes.load(), 0U);
}

TEST_F(AwaitedBytesTest, OnlyStoresToTheAwaitedBytesWake) {
    AwaitedBytesParking own(host_sleepers, awaited, 4096, 8);
    struct Case {
        std::uint64_t offset, bytes;
        bool wakes;
    };
    for (const Case& c : {Case{4096, 8, true},
                          {4088, 8, false},
                          {4104, 8, false},
                          {4095, 1, false},
                          {4103, 1, true},
                          {4000, 97, true},
                          {4000, 96, false},
                          {4000, 1000, true},
                          {0, 4096, false},
                          {4100, 4, true}}) {
        own.announce();
        const std::uint32_t before = awaited.wakes.load();
        wake(slice + c.offset, c.bytes);
        EXPECT_EQ(awaited.wakes.load() != before, c.wakes) << c.bytes << " bytes at " << c.offset;
    }
}

TEST_F(AwaitedBytesTest, AWakeBetweenAnnouncementAndSleepIsNotLost) {
    SoundSleep os;
    const auto begin = os.now();
    AwaitedBytesParking own = parking();
    own.announce();
    store(1);
    own.park(os, too_long);
    EXPECT_LT(os.now() - begin, too_long);
}

TEST_F(AwaitedBytesTest, WakesUpByItselfAfterA32ndOfTheWait) {
    FakeWaitOs os;
    os.clock_cost = 0ns;
    AwaitedBytesParking own = parking();
    for (int i = 0; i < 9; ++i) sleep_once(own, os);
    EXPECT_THAT(os.sleeps, ::testing::Each(50us));  // up to 32 * 50 us
    os.sleep(3200us - 450us);
    sleep_once(own, os);
    EXPECT_EQ(os.sleeps.back(), 100us);
    os.sleep(100ms);
    sleep_once(own, os, 1ms);  // the time until the next check of other PEs
    EXPECT_EQ(os.sleeps.back(), 1ms);
    EXPECT_EQ(awaited.sleepers.load(), 1U) << "announced between two sleeps";
}

// A writer may miss an announcement that is made at the same moment.
TEST_F(AwaitedBytesTest, SleepsBrieflyAfterEachAnnouncement) {
    FakeWaitOs os;
    AwaitedBytesParking own = parking();
    sleep_once(own, os);
    os.sleep(1s);
    os.on_sleep = [&] { store(0); };
    sleep_once(own, os);
    EXPECT_GE(os.sleeps.back(), 31ms);
    os.on_sleep = nullptr;
    sleep_once(own, os);  // the pause
    sleep_once(own, os);
    EXPECT_EQ(os.sleeps.back(), 50us);
    sleep_once(own, os);
    EXPECT_GE(os.sleeps.back(), 31ms);
}

TEST_F(AwaitedBytesTest, AnArrivalWakesEverySleeper) {
    SoundSleep os;
    const auto begin = os.now();
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 3; ++i) sleepers.emplace_back([&] { wait_for(1, os); });
    while (awaited.sleepers.load() < 3) std::this_thread::yield();
    std::atomic_ref(flag).store(1, std::memory_order_release);
    wake_all_sleepers_in(slice);
    for (auto& sleeper : sleepers) sleeper.join();
    EXPECT_LT(os.now() - begin, too_long);
    EXPECT_EQ(awaited.sleepers.load(), 0U);
}

TEST_F(AwaitedBytesTest, AWaitThatDrivesTheTransportsDoesNotWakeItself) {
    AwaitedBytesParking own = parking();
    own.announce();
    wake_all_sleepers_in(slice);
    EXPECT_EQ(awaited.wakes.load(), 0U);
    std::thread([&] { wake_all_sleepers_in(slice); }).join();
    EXPECT_EQ(awaited.wakes.load(), 1U);
}

TEST_F(AwaitedBytesTest, AnArrivalWithoutASleeperWakesNobody) {
    wake_all_sleepers_in(slice);
    { AwaitedBytesParking(host_sleepers, awaited, 4096, 8).announce(); }
    wake_all_sleepers_in(slice);
    EXPECT_EQ(awaited.wakes.load(), 0U);
}

// Another slice, as of another world of the process.
TEST_F(AwaitedBytesTest, AWaitWakesTheSleepersOfOtherSlices) {
    alignas(ControlBlock) static std::byte other_slice[control_bytes] = {};
    AwaitedBytes& other = awaited_bytes_of(other_slice);
    AwaitedBytesParking own = parking();
    own.announce();
    std::thread([&] {
        AwaitedBytesParking sleeper(host_sleepers, other, 4096, 8);
        sleeper.announce();
        std::thread([&] { wake_all_sleepers_in(other_slice); }).join();
        EXPECT_EQ(other.wakes.load(), 1U);
        sleeper.announce();
        wake_all_sleepers_in(slice);
        EXPECT_EQ(awaited.wakes.load(), 1U);
    }).join();
}

TEST_F(AwaitedBytesTest, AFailedWaitIsNoLongerAnnounced) {
    FakeWaitOs os;
    {
        AwaitedBytesParking own = parking();
        const Waiter waiter(WaitBudget{}, os, counters);
        EXPECT_EQ(waiter.until([] { return false; }, {.timeout = 10ms, .parking = &own}), Code::timeout);
        EXPECT_EQ(host_sleepers.load(), 1U);
    }
    EXPECT_EQ(awaited.sleepers.load(), 0U);
    EXPECT_EQ(host_sleepers.load(), 0U);
}

TEST_F(AwaitedBytesTest, SleepsOnceWithoutAnnouncementAfterASpuriousWakeUp) {
    FakeWaitOs os;
    AwaitedBytesParking own = parking();
    os.on_sleep = [&] { store(0); };
    sleep_once(own, os);
    EXPECT_EQ(awaited.wakes.load(), 1U);
    sleep_once(own, os);
    EXPECT_EQ(awaited.wakes.load(), 1U);
    EXPECT_EQ(awaited.sleepers.load(), 0U);
    EXPECT_EQ(host_sleepers.load(), 0U);
    sleep_once(own, os);
    EXPECT_EQ(awaited.wakes.load(), 2U);
}

TEST_F(AwaitedBytesTest, OneOfManyWritersWakes) {
    AwaitedBytesParking own = parking();
    own.announce();
    for (int writer = 0; writer < 5; ++writer) store(1);
    EXPECT_EQ(awaited.wakes.load(), 1U);
    own.announce();
    store(1);
    EXPECT_EQ(awaited.wakes.load(), 2U);
}

TEST_F(AwaitedBytesTest, PausesGrowUpToALimit) {
    FakeWaitOs os;
    AwaitedBytesParking own = parking();
    std::vector<std::chrono::nanoseconds> pauses;
    for (int i = 0; i < 8; ++i) {
        os.on_sleep = [&] { store(0); };
        sleep_once(own, os);
        os.on_sleep = nullptr;
        sleep_once(own, os);
        pauses.push_back(os.sleeps.back());
    }
    EXPECT_THAT(pauses, ElementsAre(50us, 100us, 200us, 400us, 800us, 1600us, 2ms, 2ms));
}

TEST_F(AwaitedBytesTest, AnyStoreWakesSeveralThreadsOfAPe) {
    SoundSleep os;
    const auto begin = os.now();
    std::thread first([&] { wait_for(1, os); });
    await_sleeper();
    std::uint64_t other = 0;
    std::thread second([&] {
        AwaitedBytesParking own = other_parking();
        const Waiter waiter(WaitBudget{}, os, counters);
        (void)waiter.until([&] { return std::atomic_ref(other).load() == 1; }, {.parking = &own});
    });
    while (awaited.sleepers.load() < 2) std::this_thread::yield();
    std::atomic_ref(other).store(1);
    // Until the second thread has published the range of both.
    while (awaited.sleepers.load() == 2) wake(slice + 4000, 1);
    second.join();
    std::atomic_ref(flag).store(1);
    // The first thread may be announcing itself again.
    while (awaited.sleepers.load() != 0) wake(&flag, sizeof flag);
    first.join();
    EXPECT_LT(os.now() - begin, too_long);
}

TEST_F(AwaitedBytesTest, TheLastThreadAwaitsItsOwnBytesAgain) {
    FakeWaitOs os;
    AwaitedBytesParking first = parking();
    sleep_once(first, os);
    {
        AwaitedBytesParking second = other_parking();
        sleep_once(second, os);
        EXPECT_EQ(awaited.sleepers.load(), 2U);
    }
    sleep_once(first, os);
    EXPECT_EQ(awaited.sleepers.load(), 1U);
    EXPECT_EQ(awaited.offset.load(), control_bytes);
    EXPECT_EQ(awaited.bytes.load(), sizeof flag);
}

}  // namespace

}  // namespace npushmem
