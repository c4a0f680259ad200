// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/unit/core/base/interleaver.hpp"

namespace npushmem {

namespace {

using namespace std::chrono_literals;

struct alignas(FutexCounter::bytes) Memory {
    std::byte bytes[FutexCounter::bytes] = {};
};

// Longer than any wait for a waker, shorter than the time limit of a test.
constexpr std::chrono::seconds too_long{30};

// Checks whether a waker ended each sleep.
bool sleep_until(FutexCounter line, std::uint64_t wanted) {
    SystemWaitOs os;
    FutexParking parking(line);
    for (;;) {
        parking.announce();
        const bool reached = line.value() >= wanted;
        const auto begin = os.now();
        if (!reached) parking.park(os, too_long);
        parking.retract();
        if (reached) return true;
        if (os.now() - begin >= too_long) return false;
    }
}

void store_when_asleep(FutexCounter line, std::uint32_t sleepers, std::uint64_t value) {
    while (line.sleepers() < sleepers) std::this_thread::yield();
    line.store(value);
    wake_sleepers(line);
}

TEST(FutexCounter, AWriterWakesManySleepers) {
    Memory memory;
    const FutexCounter line(memory.bytes);
    constexpr int count = 9;
    std::vector<std::thread> sleepers;
    sleepers.reserve(count);
    for (int i = 0; i < count; ++i) sleepers.emplace_back([&] { EXPECT_TRUE(sleep_until(line, 1)); });
    store_when_asleep(line, count, 1);
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(line.sleepers(), 0U);
}

TEST(FutexCounter, WakesAcrossProcessesAndMappings) {
    const int file = memfd_create("test-line", 0);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, 4096), 0);
    const auto map = [&] {
        return static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    };
    std::byte* here = map();
    ASSERT_NE(here, MAP_FAILED);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::byte* there = map();
        _exit(there != MAP_FAILED && sleep_until(FutexCounter(there), 7) ? 0 : 1);
    }
    store_when_asleep(FutexCounter(here), 1, 7);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    munmap(here, 4096);
    close(file);
}

TEST(FutexCounter, SleepReturnsAtOnceIfTheValueDiffers) {
    Memory memory;
    FutexCounter line(memory.bytes);
    line.store(5);
    SystemWaitOs os;
    line.sleep(os, 4, 1h);
    line.sleep(os, 5, 1ns);
    EXPECT_EQ(line.wake(2), 0U);
}

}  // namespace

namespace {

using testing::InterleavedMemory;
using testing::InterleavedPrograms;
using testing::InterleavedWorld;
using testing::Interleavings;
using ::testing::IsEmpty;
using testing::run_all_interleavings;

constexpr int value_word = 0;
constexpr int sleepers_word = 1;

struct ExploredLine {
    InterleavedMemory* memory;

    std::uint64_t value() { return memory->load(value_word); }
    void store(std::uint64_t value) { memory->store(value_word, value); }
    std::uint32_t sleepers() { return static_cast<std::uint32_t>(memory->load(sleepers_word)); }
    void add_sleeper() { memory->raise(sleepers_word, 1); }
    std::uint32_t remove_sleeper() {
        return static_cast<std::uint32_t>(memory->add(sleepers_word, ~std::uint64_t{0}) - 1);
    }
    void sleep(WaitOs&, std::uint64_t expected, std::chrono::nanoseconds) { memory->sleep(value_word, expected); }
    std::uint32_t wake(std::uint32_t count) {
        memory->wake(value_word, count);
        return 0;
    }
};
static_assert(ParkingCounter<ExploredLine>);

class NotingParking final : public Parking {
public:
    NotingParking(InterleavedMemory& memory, Parking& inner) : memory_(memory), inner_(inner) {}
    void announce() override {
        memory_.forget();  // every turn of sleep begins alike
        has_announced = true;
        inner_.announce();
    }
    void park(WaitOs& os, std::chrono::nanoseconds longest) override { inner_.park(os, longest); }
    void retract() override { inner_.retract(); }

    bool has_announced = false;

private:
    InterleavedMemory& memory_;
    Parking& inner_;
};

// The real Waiter, which sleeps as soon as it may. Its checks before the announcement are left out: a failed check
// leaves no trace, and a successful one ends the program without any.
void wait_for(InterleavedMemory& memory, std::uint64_t wanted, Parking& parking) {
    testing::FakeWaitOs os;
    WaitCounters counters;
    const Waiter waiter({.polls = 0, .spin_for = {}, .yield_for = {}}, os, counters);
    NotingParking noting(memory, parking);
    const auto ready = [&] { return noting.has_announced && memory.load(value_word) >= wanted; };
    (void)waiter.until(ready, {.parking = &noting});
}

void sleeper(InterleavedMemory& memory, std::uint64_t wanted) {
    FutexParking parking(ExploredLine{&memory});
    wait_for(memory, wanted, parking);
}

void writer(InterleavedMemory& memory, std::uint64_t last) {
    ExploredLine line{&memory};
    for (std::uint64_t value = 1; value <= last; ++value) {
        line.store(value);
        wake_sleepers(line);
    }
}

InterleavedPrograms world_of(int sleepers, std::uint64_t last,
                             const std::function<void(InterleavedMemory&, std::uint64_t)>& sleep = sleeper,
                             const std::function<void(InterleavedMemory&, std::uint64_t)>& write = writer) {
    InterleavedPrograms question{.programs = {}, .words = {0, 0}, .check = {}};
    for (int i = 0; i < sleepers; ++i)
        question.programs.emplace_back([=](InterleavedMemory& memory) { sleep(memory, last); });
    question.programs.emplace_back([=](InterleavedMemory& memory) { write(memory, last); });
    question.check = [last](const InterleavedWorld& world, bool ended) -> std::string {
        if (!ended) return "";
        if (world.words[value_word] != last) return "the value is lost";
        return world.words[sleepers_word] == 0 ? "" : "somebody stayed announced";
    };
    return question;
}

Interleavings explore(const char* what, const InterleavedPrograms& question) {
    Interleavings result = run_all_interleavings(question);
    std::printf("%s: %zu states%s%s (bound %zu)\n", what, result.states,
                result.fault.empty() ? "" : ", fault: ", result.fault.c_str(), question.bound);
    return result;
}

void expect_sound(const char* what, const InterleavedPrograms& question) {
    const Interleavings result = explore(what, question);
    EXPECT_THAT(result.fault, IsEmpty());
    EXPECT_TRUE(result.complete);
}

void expect_deadlock(const char* what, const InterleavedPrograms& question) {
    EXPECT_EQ(explore(what, question).fault, "deadlock");
}

TEST(ParkingExplored, NoWakeUpIsLost) {
    expect_sound("one sleeper, one store", world_of(1, 1));
    expect_sound("one sleeper, two stores", world_of(1, 2));
    expect_sound("two sleepers, two stores", world_of(2, 2));
}

TEST(ParkingExplored, WakingReachesAllSleepers) { expect_sound("three sleepers, one store", world_of(3, 1)); }

// Each of these looks right but is wrong. The exploration must find the fault.

TEST(ParkingExplored, FindsAStoreOvertakenByTheCheckForSleepers) {
    const auto late = [](InterleavedMemory& memory, std::uint64_t last) {
        memory.store_late(value_word, last);
        ExploredLine line{&memory};
        wake_sleepers(line);
    };
    expect_deadlock("store without a fence", world_of(1, 1, sleeper, late));
}

TEST(ParkingExplored, FindsAWriterThatChecksBeforeItStores) {
    const auto early = [](InterleavedMemory& memory, std::uint64_t last) {
        ExploredLine line{&memory};
        const bool somebody = line.sleepers() != 0;
        line.store(last);
        if (somebody) line.wake(wake_fanout);
    };
    expect_deadlock("look before the store", world_of(1, 1, sleeper, early));
}

// Loads the value for the kernel's comparison only when it goes to sleep, instead of the value it has seen.
class ForgetfulParking final : public Parking {
public:
    explicit ForgetfulParking(ExploredLine line) : line_(line) {}
    void announce() override { line_.add_sleeper(); }
    void park(WaitOs& os, std::chrono::nanoseconds longest) override { line_.sleep(os, line_.value(), longest); }
    void retract() override { line_.remove_sleeper(); }

private:
    ExploredLine line_;
};

TEST(ParkingExplored, FindsAComparisonWithALaterValue) {
    const auto forgetful = [](InterleavedMemory& memory, std::uint64_t wanted) {
        ForgetfulParking parking(ExploredLine{&memory});
        wait_for(memory, wanted, parking);
    };
    expect_deadlock("no value kept from before the second look", world_of(1, 1, forgetful));
}

// Leaves without waking the others.
class SelfishParking final : public Parking {
public:
    explicit SelfishParking(ExploredLine line) : line_(line) {}
    void announce() override {
        line_.add_sleeper();
        seen_ = line_.value();
    }
    void park(WaitOs& os, std::chrono::nanoseconds longest) override { line_.sleep(os, seen_, longest); }
    void retract() override { line_.remove_sleeper(); }

private:
    ExploredLine line_;
    std::uint64_t seen_ = 0;
};

TEST(ParkingExplored, FindsABrokenWakeTree) {
    const auto selfish = [](InterleavedMemory& memory, std::uint64_t wanted) {
        SelfishParking parking(ExploredLine{&memory});
        wait_for(memory, wanted, parking);
    };
    expect_deadlock("the woken wake nobody", world_of(3, 1, selfish));
}

TEST(SystemWaitOs, RunTimeStandsStillInSleep) {
    SystemWaitOs os;
    const std::chrono::nanoseconds ran = os.run_time();
    EXPECT_GT(ran, 0ns);
    os.sleep(20ms);
    EXPECT_LT(os.run_time() - ran, std::chrono::nanoseconds(20ms));
    while (os.run_time() - ran < 1ms) {
    }
}

TEST(SystemWaitOs, SleepsAtLeastAsLongAsAsked) {
    SystemWaitOs os;
    const std::chrono::nanoseconds begin = os.now();
    os.sleep(1ms);
    os.yield();
    EXPECT_GE(os.now() - begin, 1ms);
}

}  // namespace

}  // namespace npushmem
