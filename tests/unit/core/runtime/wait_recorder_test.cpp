// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/wait_recorder.hpp"

#include <gmock/gmock.h>

#include <array>
#include <memory>

#include "core/base/liveness.hpp"
#include "core/team/collective_calls.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

using testing::FakeWaitOs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

// PE 1 of PEs 1 and 2 of a host, in a job of four.
class WaitRecorderTest : public ::testing::Test {
protected:
    void start(std::chrono::nanoseconds report_after) {
        for (std::size_t i = 0; i < local_pes_.size(); ++i) {
            control(local_pes_[i]).pe = local_pes_[i];
            control(local_pes_[i]).slice_bytes = sizeof(ControlBlock);
            control(local_pes_[i]).state = static_cast<std::uint32_t>(PeState::running);
            control(local_pes_[i]).process = this_process().pid;
            control(local_pes_[i]).process_start = this_process().start;
        }
        const auto remote_state = [](int pe) { return pe == 3 ? RemotePeState::lost : RemotePeState::unknown; };
        recorder_.start(
            {1, 4, PeRange::of(local_pes_), [this](int pe) { return &control(pe); }, report_after, remote_state}, log_);
    }
    ControlBlock& control(int pe) { return blocks_[static_cast<std::size_t>(pe) - 1]; }
    PeWait recorded() { return control(1).progress.wait.read().value_or(PeWait{}); }

    // Waits for this long; calls `look` at every check.
    void wait(const Waiter& waiter, std::chrono::nanoseconds length, WaitFor what,
              const std::function<void()>& look = nullptr) {
        const auto until = os_.time() + length;
        const Code code = waiter.until(
            [&] {
                if (look) look();
                return os_.time() >= until;
            },
            what);
        EXPECT_EQ(code, Code::ok);
    }
    // Returns what is written to the standard error meanwhile.
    std::string errors_of(const std::function<void()>& work) {
        ::testing::internal::CaptureStderr();
        work();
        return ::testing::internal::GetCapturedStderr();
    }

    FakeWaitOs os_;
    WaitCounters counters_;
    Log log_;
    std::array<int, 2> local_pes_{1, 2};
    std::unique_ptr<ControlBlock[]> blocks_ = std::make_unique<ControlBlock[]>(2);
    WaitRecorder recorder_;
    Waiter waiter_{WaitBudget{}, os_, counters_, nullptr, nullptr, &recorder_};
};

TEST_F(WaitRecorderTest, RecordsALongWaitWhileItLasts) {
    start(0s);
    PeWait seen;
    const WaitFor what{.what = "a value",
                       .needs = PeRange::one(3),
                       .call = "npushmem_long_wait_until",
                       .object = &control(1).progress};
    const auto look = [&] {
        if (recorded().since != 0) seen = recorded();
    };
    EXPECT_THAT(errors_of([&] { wait(waiter_, 50ms, what, look); }), IsEmpty()) << "no period, no report";
    EXPECT_EQ(text_of(seen.call), "npushmem_long_wait_until");
    EXPECT_EQ(text_of(seen.what), "a value");
    EXPECT_EQ(seen.peer, 3);
    EXPECT_EQ(seen.call_number, 0U);
    EXPECT_EQ(seen.object, offsetof(ControlBlock, progress));
    EXPECT_EQ(recorded(), PeWait{});
}

TEST_F(WaitRecorderTest, WritesNothingForAShortWait) {
    start(0s);
    wait(waiter_, 5ms, {.what = "a value"});
    EXPECT_EQ(control(1).progress.wait.sequence(), 0U);
}

TEST_F(WaitRecorderTest, RecordsOneOfTwoWaitsThatLastAtTheSameTime) {
    start(0s);
    wait(waiter_, 100ms, {.what = "the outer one"}, [&] {
        if (recorded().since == 0) return;
        wait(waiter_, 30ms, {.what = "the inner one"});
        EXPECT_EQ(text_of(recorded().what), "the outer one");
    });
    EXPECT_EQ(recorded(), PeWait{});
}

TEST_F(WaitRecorderTest, AWaitOfATeamHasTheCollectiveCall) {
    start(0s);
    const std::string name = "world";
    CollectiveCalls calls(waiter_, name, &control(1).progress.world_calls);
    { const CollectiveCall first(calls, "npushmem_sync_all"); }
    const CollectiveCall second(calls, "npushmem_barrier_all");
    PeWait seen;
    wait(calls.waiter(), 50ms, {.what = "a barrier"}, [&] {
        if (recorded().since != 0) seen = recorded();
    });
    EXPECT_EQ(text_of(seen.call), "npushmem_barrier_all");
    EXPECT_EQ(text_of(seen.team), "world");
    EXPECT_EQ(seen.call_number, 2U);
    EXPECT_EQ(control(1).progress.world_calls, 2U);
}

TEST_F(WaitRecorderTest, ReportsOncePerPeriod) {
    start(60s);
    EXPECT_THAT(errors_of([&] { wait(waiter_, 59s, {.what = "a barrier"}); }), IsEmpty());
    const std::string once = errors_of([&] { wait(waiter_, 100s, {.what = "a barrier"}); });
    EXPECT_THAT(once, HasSubstr("PE 1 has waited 60.1 s for a barrier"));
    EXPECT_THAT(once, HasSubstr("PE 2 has no long wait in the library"));
    EXPECT_THAT(once, HasSubstr("PEs 0,3 run on other hosts, whose reports cover them; PE 3 is lost"));
    EXPECT_THAT(once, Not(HasSubstr("waited 120")));
    EXPECT_THAT(errors_of([&] { wait(waiter_, 130s, {.what = "a barrier"}); }), HasSubstr("waited 120."));
}

TEST_F(WaitRecorderTest, ReportsThatAPeHasEnded) {
    start(60s);
    ++control(2).process_start;  // another process has its number by now
    EXPECT_THAT(errors_of([&] { wait(waiter_, 100s, {.what = "a barrier"}); }), HasSubstr("PE 2 has ended"));
}

TEST_F(WaitRecorderTest, DoesNotReportWhenAnotherPeOfTheHostHasReported) {
    start(60s);
    const auto other_reports = [&] {
        control(1).progress.reports.take(std::chrono::steady_clock::time_point(os_.time()), 1ns);
    };
    EXPECT_THAT(errors_of([&] { wait(waiter_, 100s, {.what = "a barrier"}, other_reports); }), IsEmpty());
}

TEST_F(WaitRecorderTest, IgnoresWaitsBeforeItsStartAndAfterItsEnd) {
    wait(waiter_, 50ms, {.what = "a value"});
    start(1s);
    recorder_.stop();
    EXPECT_THAT(errors_of([&] { wait(waiter_, 5s, {.what = "a value"}); }), IsEmpty());
    EXPECT_EQ(control(1).progress.wait.sequence(), 0U);
}

}  // namespace

}  // namespace npushmem
