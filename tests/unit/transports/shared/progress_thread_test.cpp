// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/progress_thread.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <new>

namespace npushmem {
namespace {

constexpr std::chrono::milliseconds tick{5};
constexpr std::uint64_t rarely = 1;
constexpr std::uint64_t often = 1'000'000'000;

// Counts what the thread does; others drive the transport `more` times between each two looks at it.
class Driven {
public:
    explicit Driven(std::uint64_t more, int answer = ProgressThread::wait_briefly) : more_(more), answer_(answer) {}

    ProgressThread::Work work() {
        return {[this] {
                    note(drives_);
                    return answer_;
                },
                [this] {
                    note(looks_);
                    return driven_ += more_;
                },
                [this] { note(ticks_); }, tick};
    }
    template <class Ready>
    void wait_until(Ready ready) {
        std::unique_lock guard(lock_);
        changed_.wait(guard, [&] { return ready(*this); });
    }
    int drives_ = 0;
    int looks_ = 0;
    int ticks_ = 0;

private:
    void note(int& count) {
        const std::lock_guard guard(lock_);
        ++count;
        changed_.notify_all();
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::uint64_t more_;
    int answer_;
    std::uint64_t driven_ = 0;  // the thread's
};

TEST(ProgressThread, DrivesAnIdleProgram) {
    Driven driven(0);
    const auto thread = ProgressThread::start(driven.work());
    ASSERT_TRUE(thread.ok());
    driven.wait_until([](const Driven& d) { return d.drives_ > 2 && d.ticks_ > 1; });
}

void drive_without_memory() {
    const auto thread =
        ProgressThread::start({[]() -> int { throw std::bad_alloc(); }, [] { return std::uint64_t{0}; }, [] {}, tick});
    ::alarm(60);
    while (thread.ok()) ::pause();  // until the thread ends the process
}

TEST(ProgressThreadDeathTest, ADriveWithoutMemoryEndsTheProcess) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(drive_without_memory(), ::testing::ExitedWithCode(1), "cannot allocate private memory");
}

TEST(ProgressThread, ContinuesWithMoreWorkAndCanStop) {
    Driven driven(0, ProgressThread::continue_now);
    const auto thread = ProgressThread::start(driven.work());
    ASSERT_TRUE(thread.ok());
    // With a pause after each there would be at most five per tick.
    driven.wait_until([](const Driven& d) { return d.drives_ > 500 + 10 * d.ticks_ && d.ticks_ > 1; });
}

TEST(ProgressThread, DrivesBesideAProgramThatDrivesRarely) {
    Driven driven(rarely);
    const auto thread = ProgressThread::start(driven.work());
    ASSERT_TRUE(thread.ok());
    driven.wait_until([](const Driven& d) { return d.drives_ > 2; });
}

TEST(ProgressThread, DrivesAtAnAlarmBesideAProgramThatDrivesOften) {
    const int alarm = ::eventfd(1, EFD_CLOEXEC);
    ASSERT_GE(alarm, 0);
    Driven driven(often);
    ProgressThread::Work work = driven.work();
    work.alarm = alarm;
    {
        const auto thread = ProgressThread::start(std::move(work));
        ASSERT_TRUE(thread.ok());
        driven.wait_until([](const Driven& d) { return d.drives_ > 5; });
    }
    ::close(alarm);
}

TEST(ProgressThread, SleepsWhileTheProgramDrivesOften) {
    Driven driven(often);
    const auto thread = ProgressThread::start(driven.work());
    ASSERT_TRUE(thread.ok());
    driven.wait_until([](const Driven& d) { return d.looks_ > 5 && d.ticks_ > 1; });
    driven.wait_until([](const Driven& d) {
        EXPECT_EQ(d.drives_, 0);
        return true;
    });
}

// A wait that begins with many calls and then sleeps: the thread, which has slept, drives at once.
TEST(ProgressThread, DrivesAfterASleepOnTheDescriptorWhateverWasDrivenMeanwhile) {
    const int descriptor = ::eventfd(0, EFD_CLOEXEC);  // never readable: the thread sleeps for a tick
    ASSERT_GE(descriptor, 0);
    Driven driven(0, descriptor);
    ProgressThread::Work work = driven.work();
    std::uint64_t calls = 0;  // the thread's
    work.drive = [&calls, drive = work.drive] {
        calls += often;
        return drive();
    };
    work.driven_by_others = [&calls, look = work.driven_by_others] {
        (void)look();
        return calls;
    };
    {
        const auto thread = ProgressThread::start(std::move(work));
        ASSERT_TRUE(thread.ok());
        driven.wait_until([](const Driven& d) { return d.drives_ > 2; });
    }
    // One look at the start and one before each drive, and perhaps one before the end.
    EXPECT_LE(driven.looks_, driven.drives_ + 2);
    ::close(descriptor);
}

}  // namespace
}  // namespace npushmem
