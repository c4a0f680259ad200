// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of a job's kernels with PEs that are objects of the test: they answer while the scheduler sleeps.
#include "core/npu/check/processes/step_scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/npu/compare.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem::npu::check {
namespace {

using explore::Step;
using explore::ThreadId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Answer = StepTurns::Answer;

// Of the jobs whose hosts enter barriers.
constexpr int job_pes = 2;

// What the threads of a PE's only launch do.
struct Plan {
    std::vector<std::vector<Step>> threads;        // the steps of each
    std::vector<StepTurns::Waiting> waiting = {};  // threads that wait for ever
    bool launches = true;                          // false: the PE's host neither launches nor enters a barrier
    int dies_after = -1;                           // steps that it completes before its process ends; -1: it does not
    std::uint64_t host_barriers = 0;               // that the host has entered before the launch
    bool host_waits = false;                       // in a call that is not a host barrier
    std::size_t launches_behind = 0;               // the launch begins when the job has taken so many steps
    bool synchronizes = true;                      // the host waits for its kernels
    int host_acts_after = -1;      // looks of the kernel after which the host ends all its waits and synchronizes
    bool in_next_barrier = false;  // the host has queued the launch, which begins late, and entered a barrier
};

class FakePe {
public:
    FakePe(StepTurns& turns, int pe, const Plan& plan)
        : plan_(plan), turns_(turns), slot_(turns.slots[static_cast<std::size_t>(pe)]), pe_(pe) {
        for (const auto& steps : plan_.threads) left_.push_back(steps.size());
        ended_ = !plan_.launches;
        turns_.entered[static_cast<std::size_t>(pe)] = plan_.host_barriers;
        turns_.host_waits[static_cast<std::size_t>(pe)] = plan_.host_waits;
        turns_.host_synchronizes[static_cast<std::size_t>(pe)] = plan_.synchronizes && plan_.launches;
        slot_.queued_at = plan_.host_barriers;
        if (!plan_.in_next_barrier) return;
        turns_.entered[static_cast<std::size_t>(pe)] += 1;
        turns_.launches[static_cast<std::size_t>(pe)] = 1;
        late_ = 5;
    }

    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] bool dead() const { return dead_; }
    [[nodiscard]] const std::vector<Answer>& answers() const { return answers_; }

    // Continues if the scheduler has answered. Adds the step that was granted, as "<pe>.<thread>".
    void act(std::vector<std::string>& granted) {
        if (ended_ || dead_ || slot_.asked != slot_.answered || !has_left_barrier()) return;
        if (granted.size() < plan_.launches_behind || late_-- > 0) return;
        if (std::exchange(begun_, true)) take_answer(granted);
        if (!ended_ && !dead_) ask();
    }

private:
    // Every PE has entered the host barrier before the launch.
    [[nodiscard]] bool has_left_barrier() const {
        const auto entered =
            std::ranges::count_if(turns_.entered, [this](const auto& number) { return number >= plan_.host_barriers; });
        return plan_.host_barriers == 0 || entered == job_pes;
    }

    void take_answer(std::vector<std::string>& granted) {
        answers_.push_back(slot_.answer);
        slot_.step.exists = false;
        if (slot_.answer == Answer::ended) {
            ended_ = true;
            turns_.entered[static_cast<std::size_t>(pe_)] += 1;
        }
        if (slot_.answer == Answer::deadlock || slot_.answer == Answer::late_host || slot_.answer == Answer::step_limit)
            failed_ = true;
        if (slot_.answer == Answer::look_again && plan_.host_acts_after-- == 1) end_waits();
        if (slot_.answer != Answer::run) return;
        granted.push_back(std::to_string(pe_) + "." + std::to_string(slot_.thread));
        if (steps_++ == plan_.dies_after) {
            dead_ = true;
            return;
        }
        const auto thread = static_cast<std::size_t>(slot_.thread);
        const std::vector<Step>& steps = plan_.threads[thread];
        slot_.step.take(steps[steps.size() - left_[thread]--]);
        slot_.preferred = slot_.thread;
    }

    // By the host.
    void end_waits() {
        for (const StepTurns::Waiting& one : plan_.waiting) {
            plan_.threads[static_cast<std::size_t>(one.thread)].push_back({});
            ++left_[static_cast<std::size_t>(one.thread)];
        }
        plan_.waiting.clear();
        turns_.host_synchronizes[static_cast<std::size_t>(pe_)] = true;
    }

    void ask() {
        slot_.enabled.clear();
        slot_.waiting.clear();
        for (std::size_t thread = 0; thread < left_.size() && !failed_; ++thread)
            if (left_[thread] > 0) slot_.enabled.add(static_cast<ThreadId>(thread));
        for (const StepTurns::Waiting& one : plan_.waiting) slot_.waiting.add(one);
        slot_.launch_ended = slot_.enabled.count == 0 && (plan_.waiting.empty() || failed_);
        slot_.asked.fetch_add(1);
    }

    Plan plan_;
    StepTurns& turns_;
    StepTurns::Slot& slot_;
    int pe_;
    std::vector<std::size_t> left_;
    std::vector<Answer> answers_;
    int steps_ = 0;
    int late_ = 0;  // calls of act() before the launch begins
    bool begun_ = false;
    bool failed_ = false;
    bool ended_ = false;
    bool dead_ = false;
};

// Counts what the scheduler reports of a run.
class CountedDecisions final : public explore::Decisions {
public:
    explicit CountedDecisions(int redundant_after = -1) : redundant_after_(redundant_after) {}

    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId last) override {
        if (chosen++ == 0) first_enabled = enabled.size();
        return explore::default_order(enabled, last).front();
    }
    void executed(Step step) override { steps.push_back(std::move(step)); }
    [[nodiscard]] bool redundant() const override { return redundant_after_ >= 0 && chosen > redundant_after_; }
    void end_run(const std::vector<explore::Waiting>& threads) override {
        ++ends;
        for (const explore::Waiting& one : threads) waiting.push_back(one.thread);
    }

    int chosen = 0;
    std::size_t first_enabled = 0;
    int ends = 0;
    std::vector<Step> steps;
    std::vector<ThreadId> waiting;

private:
    int redundant_after_;
};

struct RunRecord {
    std::vector<std::string> granted;
    std::vector<explore::Deviation> deviations;
    std::vector<std::vector<Answer>> answers;  // by PE
    std::chrono::nanoseconds first_grant{0};
    std::uint64_t steps = 0;
    bool abandoned = false;
    std::string obstacle;
};

// A job of these PEs, which ends when all have ended or died.
RunRecord run_job(const std::vector<Plan>& plans, explore::Decisions& decisions) {
    const auto turns = std::make_unique<StepTurns>();
    turns->max_steps = 1000;
    std::vector<std::unique_ptr<FakePe>> pes;
    for (const Plan& plan : plans) pes.push_back(std::make_unique<FakePe>(*turns, static_cast<int>(pes.size()), plan));
    npushmem::testing::FakeWaitOs os;
    const auto begin = os.time();
    StepScheduler scheduler(*turns, static_cast<int>(plans.size()), decisions, os);
    std::atomic<bool> ended{false};
    RunRecord run;
    int idle = 0;
    os.on_sleep = [&] {
        const std::size_t before = run.granted.size();
        for (const auto& pe : pes) pe->act(run.granted);
        if (before == 0 && !run.granted.empty()) run.first_grant = os.time() - begin;
        // The launcher ends a job of which a process has died.
        const bool died = std::ranges::any_of(pes, [](const auto& pe) { return pe->dead(); });
        ended = std::ranges::all_of(pes, [](const auto& pe) { return pe->ended(); }) || (died && ++idle == 100);
    };
    scheduler.run(ended);
    run.deviations = scheduler.decided_run().deviations();
    run.steps = scheduler.decided_run().steps();
    run.abandoned = scheduler.abandoned();
    run.obstacle = scheduler.obstacle();
    for (const auto& pe : pes) run.answers.push_back(pe->answers());
    return run;
}

Step reads(std::uint64_t word) { return {{{word, word + 8, false}}, {}, {}}; }
Step writes(std::uint64_t word) { return {{{word, word + 8, true}}, {}, {}}; }

const std::vector<Plan> two_pes{{.threads = {{reads(8), reads(8)}, {reads(16)}}},
                                {.threads = {{reads(24), reads(24)}}}};

TEST(StepScheduler, RunsAThreadUntilItEndsAndThenTheNextOne) {
    CountedDecisions decisions;
    const RunRecord run = run_job(two_pes, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "0.0", "0.1", "1.0", "1.0"));
    EXPECT_EQ(run.steps, 5U);
    EXPECT_EQ(decisions.steps.size(), 5U);
    EXPECT_TRUE(run.deviations.empty());
    EXPECT_EQ(decisions.ends, 1);
}

TEST(StepScheduler, ReplaysDeviations) {
    // PE 1's thread is the third of the job.
    const std::vector<explore::Deviation> deviations{{1, 2}, {3, 0}};
    explore::Replay replay(deviations);
    const RunRecord run = run_job(two_pes, replay);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "1.0", "1.0", "0.0", "0.1"));
    // The fourth step is the first in the default order: PE 1's launch has ended.
    EXPECT_THAT(run.deviations, ElementsAre(explore::Deviation{1, 2}));
}

TEST(StepScheduler, LetsOtherPesLookAgainAfterAWrite) {
    CountedDecisions decisions;
    const RunRecord run = run_job({{.threads = {{writes(8)}}}, {.threads = {{reads(8)}}}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "1.0"));
    EXPECT_THAT(run.answers[0], ElementsAre(Answer::run, Answer::ended));
    EXPECT_THAT(run.answers[1], ElementsAre(Answer::look_again, Answer::run, Answer::ended));
}

TEST(StepScheduler, OrdersLaunchesByHostBarriers) {
    CountedDecisions decisions;
    // PE 1 launches behind a host barrier that PE 0 enters when its launch has ended.
    const RunRecord run =
        run_job({{.threads = {{reads(8)}}}, {.threads = {{reads(8)}}, .host_barriers = 1}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "1.0"));
    ASSERT_EQ(decisions.steps.size(), 2U);
    EXPECT_TRUE(decisions.steps[0].after.empty());
    ASSERT_EQ(decisions.steps[1].after.size(), 1U);
    EXPECT_EQ(decisions.steps[1].after[0].thread, 0);
}

TEST(StepScheduler, WaitsTwoSecondsForAHostThatWaitsInACall) {
    CountedDecisions decisions;
    const RunRecord run =
        run_job({{.threads = {{reads(8)}}}, {.threads = {}, .launches = false, .host_waits = true}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0"));
    EXPECT_GE(run.first_grant, std::chrono::seconds(2));
    EXPECT_LT(run.first_grant, std::chrono::seconds(3));
    EXPECT_EQ(run.obstacle, "");
}

TEST(StepScheduler, WaitsThirtySecondsForAHostThatComputes) {
    CountedDecisions decisions;
    const RunRecord run = run_job({{.threads = {{reads(8)}}}, {.threads = {}, .launches = false}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0"));
    EXPECT_GE(run.first_grant, std::chrono::seconds(30));
    EXPECT_LT(run.first_grant, std::chrono::seconds(31));
    EXPECT_EQ(run.obstacle, "");
}

TEST(StepScheduler, ReportsALaunchThatTheOthersDidNotWaitFor) {
    CountedDecisions decisions;
    const RunRecord run =
        run_job({{.threads = {{reads(8), reads(8)}}}, {.threads = {{reads(16)}}, .launches_behind = 1}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "0.0", "1.0"));
    EXPECT_THAT(run.obstacle, HasSubstr("PE 1 launched a kernel after the others had waited 30 s"));
}

TEST(StepScheduler, ReportsNoDeadlockOfKernelsThatWaitForAHost) {
    CountedDecisions decisions;
    const StepTurns::Waiting wait{0, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run =
        run_job({{.threads = {{}}, .waiting = {wait}}, {.threads = {}, .launches = false}}, decisions);
    EXPECT_THAT(run.answers[0], ElementsAre(Answer::idle, Answer::late_host, Answer::ended));
    EXPECT_THAT(run.obstacle, HasSubstr("the host of PE 1 has neither launched a kernel"));
}

TEST(StepScheduler, ReportsADeadlockWhenNoThreadIsEnabled) {
    CountedDecisions decisions;
    const StepTurns::Waiting wait{0, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run = run_job({{.threads = {{}}, .waiting = {wait}}}, decisions);
    EXPECT_THAT(run.answers[0], ElementsAre(Answer::idle, Answer::look_again, Answer::deadlock, Answer::ended));
    EXPECT_EQ(run.obstacle, "");
}

// The host of the PE has launched the kernel and may still signal to it.
TEST(StepScheduler, WaitsForAHostBesideItsKernel) {
    CountedDecisions decisions;
    const StepTurns::Waiting wait{0, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run =
        run_job({{.threads = {{}}, .waiting = {wait}, .synchronizes = false, .host_acts_after = 3}}, decisions);
    EXPECT_THAT(run.answers[0], ElementsAre(Answer::idle, Answer::look_again, Answer::look_again, Answer::look_again,
                                            Answer::run, Answer::ended));
    EXPECT_EQ(run.obstacle, "");
}

// It signalled just before it waited for its kernel.
TEST(StepScheduler, LooksAgainWhenTheLastHostHasBlocked) {
    CountedDecisions decisions;
    const StepTurns::Waiting wait{0, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run = run_job({{.threads = {{}}, .waiting = {wait}, .host_acts_after = 1}}, decisions);
    EXPECT_THAT(run.answers[0], ElementsAre(Answer::idle, Answer::look_again, Answer::run, Answer::ended));
}

TEST(StepScheduler, ReportsNoDeadlockBesideAHostThatComputes) {
    CountedDecisions decisions;
    const StepTurns::Waiting wait{0, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run = run_job({{.threads = {{}}, .waiting = {wait}, .synchronizes = false}}, decisions);
    ASSERT_GT(run.answers[0].size(), 3U);
    EXPECT_EQ(run.answers[0][run.answers[0].size() - 2], Answer::late_host);
    EXPECT_THAT(run.obstacle, HasSubstr("within 30 s the host of PE 0 has neither launched a kernel"));
}

// Its barrier does not order the kernel that it queued before.
TEST(StepScheduler, WaitsForAQueuedLaunchWhoseHostIsInABarrier) {
    CountedDecisions decisions;
    const RunRecord run =
        run_job({{.threads = {{reads(8)}}}, {.threads = {{reads(8)}}, .in_next_barrier = true}}, decisions);
    EXPECT_EQ(decisions.first_enabled, 2U);
    ASSERT_EQ(decisions.steps.size(), 2U);
    EXPECT_TRUE(decisions.steps[1].after.empty());
    EXPECT_EQ(run.obstacle, "");
}

TEST(StepScheduler, ReportsALaunchBehindACallInWhichTheHostWaited) {
    CountedDecisions decisions;
    const RunRecord run = run_job(
        {{.threads = {{reads(8), reads(8)}}}, {.threads = {{reads(16)}}, .host_waits = true, .launches_behind = 1}},
        decisions);
    EXPECT_THAT(run.obstacle, HasSubstr("had waited 2 s for its host, which waited in a call"));
}

// The launcher ends the job; nobody else gets a turn before.
TEST(StepScheduler, GrantsNothingBehindAPeThatDiedInItsStep) {
    CountedDecisions decisions;
    const RunRecord run =
        run_job({{.threads = {{reads(8), reads(8)}}, .dies_after = 1}, {.threads = {{reads(16)}}}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "0.0"));
    EXPECT_EQ(decisions.steps.size(), 1U);
    EXPECT_EQ(decisions.ends, 1);
}

TEST(StepScheduler, ContinuesARedundantRunInTheDefaultOrder) {
    CountedDecisions decisions(1);
    const StepTurns::Waiting wait{1, {8, 1, static_cast<std::uint32_t>(Compare::equal), true}};
    const RunRecord run = run_job(
        {{.threads = {{reads(8), reads(8), reads(8)}}}, {.threads = {{reads(16)}, {}}, .waiting = {wait}}}, decisions);
    EXPECT_THAT(run.granted, ElementsAre("0.0", "0.0", "0.0", "1.0"));
    EXPECT_EQ(decisions.chosen, 2);
    EXPECT_EQ(decisions.ends, 1);
    EXPECT_THAT(decisions.waiting, ElementsAre(2));
    EXPECT_EQ(run.steps, 4U);
}

TEST(StepScheduler, ReportsAStepBehindTooManyOthers) {
    CountedDecisions decisions;
    Step last = reads(8);
    last.after.assign(SharedStep::max_after + 1, {0, 1});
    const RunRecord run = run_job({{.threads = {{reads(8), last}}}}, decisions);
    EXPECT_EQ(run.obstacle, "a step of PE 0 waits for more than 512 others, as a fence or quiet does");
}

TEST(StepScheduler, ReportsTooManyThreads) {
    CountedDecisions decisions;
    const std::vector<std::vector<Step>> threads(StepTurns::max_threads + 1, {reads(8)});
    EXPECT_THAT(run_job({{.threads = threads, .dies_after = 0}}, decisions).obstacle,
                HasSubstr("PE 0 has more than 1024 cores, pipes"));
}

TEST(StepScheduler, AbandonsARunThatRepeatsOthersForTooManySteps) {
    CountedDecisions decisions(1);
    const std::vector<Plan> plan{{.threads = {std::vector<Step>(1001, reads(8))}}};
    EXPECT_TRUE(run_job(plan, decisions).abandoned);
    CountedDecisions new_ones;
    EXPECT_FALSE(run_job(plan, new_ones).abandoned);
}

TEST(StepScheduler, EndsARunWithTooManySteps) {
    CountedDecisions decisions;
    const RunRecord run = run_job({{.threads = {std::vector<Step>(1001, reads(8))}}}, decisions);
    EXPECT_EQ(run.steps, 1000U);
    EXPECT_EQ(run.answers[0][1000], Answer::step_limit);
}

}  // namespace
}  // namespace npushmem::npu::check
