// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_liveness.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <set>

namespace npushmem {

namespace {

ProcessLiveness::ProcessLookup lookup(const std::vector<ProcessId>& processes) {
    return [processes](int pe) { return processes[static_cast<std::size_t>(pe)]; };
}

// PE 0 of four queries. All "processes" are this one; dead ones are an earlier run of it.
class JobLivenessTest : public ::testing::Test {
protected:
    static constexpr PeRange everybody{0, 1, 4};

    JobLivenessTest() : blocks(std::make_unique<ControlBlock[]>(4)) {}

    void watch(const std::vector<int>& died) {
        std::vector<ProcessId> processes(4, this_process());
        for (const int pe : died) processes[static_cast<std::size_t>(pe)].start += 1;
        liveness.emplace(4, lookup(processes));
        liveness->watch(
            0, [this](int pe) { return unmapped.contains(pe) ? nullptr : &blocks[static_cast<std::size_t>(pe)]; },
            [this](std::uint64_t) { return any_departed; }, [this] { return barriers; });
    }

    ControlBlock& block(int pe) { return blocks[static_cast<std::size_t>(pe)]; }
    void finalized(int pe, std::uint64_t last_barrier) {
        block(pe).state.store(static_cast<std::uint32_t>(PeState::finalized), std::memory_order_relaxed);
        block(pe).last_barrier.store(last_barrier, std::memory_order_relaxed);
        any_departed = true;
    }
    // Writes a departure as a PE of another host does.
    void departed(int pe, std::uint32_t last_barrier) {
        block(0).departures[departure_slot(pe)].store(Departure{pe, last_barrier}.packed(), std::memory_order_relaxed);
        any_departed = true;
    }
    void reported_dead(int pe) {
        block(0).departures[departure_slot(pe)].store(Departure::of_dead(pe).packed(), std::memory_order_relaxed);
    }
    void note(int writer, int blamed) { block(writer).first_dead_pe.store(blamed + 1, std::memory_order_relaxed); }

    std::unique_ptr<ControlBlock[]> blocks;
    std::optional<JobLiveness> liveness;
    std::uint64_t barriers = 5;
    std::set<int> unmapped;
    bool any_departed = false;
};

TEST_F(JobLivenessTest, ReportsNoPeWhileAllRun) {
    watch({});
    EXPECT_EQ(liveness->find_dead(everybody), std::nullopt);
    EXPECT_EQ(block(0).first_dead_pe.load(), 0);
}

TEST_F(JobLivenessTest, ReportsAndRecordsADeadPe) {
    watch({2});
    EXPECT_EQ(liveness->find_dead(everybody), 2);
    EXPECT_EQ(block(0).first_dead_pe.load(), 3);
}

TEST_F(JobLivenessTest, TellsTheListenerWhichPeHasDied) {
    watch({2});
    note(2, 1);
    std::vector<int> reported;
    liveness->on_dead([&reported](int pe) { reported.push_back(pe); });
    EXPECT_EQ(liveness->find_dead({0, 1, 2}), std::nullopt);
    EXPECT_EQ(liveness->find_dead(everybody), 1) << "the cause";
    EXPECT_EQ(reported, std::vector<int>{2}) << "not the cause, which may be connected";
    liveness->on_dead(nullptr);
    EXPECT_EQ(liveness->find_dead(everybody), 1);
    EXPECT_EQ(reported.size(), 1U);
}

TEST_F(JobLivenessTest, FindsTheEndOfAPeWhoseProcessIsNotVisible) {
    liveness.emplace(4, lookup({this_process(), {}, {}, this_process()}));
    liveness->watch(
        0, [this](int pe) { return &block(pe); }, [](std::uint64_t) { return false; }, [this] { return barriers; });
    int ended = -1;
    std::vector<int> asked;
    liveness->watch_unseen({1, 2}, [&](int pe) {
        asked.push_back(pe);
        return pe == ended;
    });
    EXPECT_EQ(liveness->find_dead(everybody), std::nullopt);
    EXPECT_EQ(asked, (std::vector<int>{1, 2})) << "the others are visible";
    ended = 2;
    EXPECT_EQ(liveness->find_dead({0, 1, 2}), std::nullopt) << "it is not needed there";
    EXPECT_EQ(liveness->find_dead(everybody), 2);
    EXPECT_EQ(block(0).first_dead_pe.load(), 3);
}

TEST_F(JobLivenessTest, FindsAPeThatHasFinalized) {
    watch({});
    finalized(3, 5);
    EXPECT_EQ(liveness->find_dead(everybody), 3);
}

TEST_F(JobLivenessTest, APeThatFinalizedAfterTheCurrentBarrierIsNotMissing) {
    watch({});
    finalized(3, 6);
    EXPECT_EQ(liveness->find_dead(everybody), std::nullopt);
}

TEST_F(JobLivenessTest, FindsAPeWhoseConnectionIsLost) {
    watch({});
    liveness->mark_lost(3);
    EXPECT_EQ(liveness->find_dead(everybody), 3);
    EXPECT_EQ(liveness->find_dead({0, 1, 3}), std::nullopt) << "it is not needed there";
}

TEST_F(JobLivenessTest, ReportsTheFirstCauseOfAChainOfFailures) {
    watch({1, 3});
    note(1, 3);
    EXPECT_EQ(liveness->find_dead(PeRange::one(1)), 3);
    finalized(2, 5);
    note(2, 1);
    EXPECT_EQ(liveness->find_dead(PeRange::one(2)), 3) << "two notes in a row";
}

TEST_F(JobLivenessTest, KeepsTheFirstRecordedPe) {
    watch({1, 3});
    EXPECT_EQ(liveness->find_dead(PeRange::one(3)), 3);
    EXPECT_EQ(liveness->find_dead(PeRange::one(1)), 1);
    EXPECT_EQ(block(0).first_dead_pe.load(), 4);
}

TEST_F(JobLivenessTest, AJobThatSurvivesDeathsNamesTheDeadPeItself) {
    watch({1, 3});
    note(1, 3);
    std::vector<int> own;
    liveness->survive_deaths();
    liveness->on_own_finding([&own](int pe) {
        own.push_back(pe);
        return true;
    });
    EXPECT_EQ(liveness->find_dead(PeRange::one(1)), 1);
    EXPECT_EQ(block(0).first_dead_pe.load(), 0);
    unmapped = {2};
    reported_dead(2);
    EXPECT_EQ(liveness->find_dead(PeRange::one(2)), 2);
    EXPECT_EQ(own, (std::vector<int>{1, 3})) << "PE 3 too; the death of PE 2 was reported by another PE";
    liveness->mark_lost(2);
    EXPECT_EQ(liveness->find_dead(PeRange::one(2)), 2);
    EXPECT_EQ(own, (std::vector<int>{1, 3, 2}));
}

// However many barriers this PE has left, and also while it waits for the end of the job, when departures do not count.
TEST_F(JobLivenessTest, KeepsReportedDeathsAndFreesTheirSlots) {
    watch({});
    liveness->survive_deaths();
    barriers = 3'000'000'000;
    const int other = 2 + static_cast<int>(departure_slots);
    reported_dead(2);
    EXPECT_EQ(liveness->find_dead({0, 1, 2}), std::nullopt);
    EXPECT_EQ(block(0).departures[departure_slot(2)].load(), 0U);
    reported_dead(other);  // its slot is that of PE 2
    EXPECT_EQ(liveness->find_dead(PeRange::one(2)), 2);
    EXPECT_EQ(liveness->find_dead(PeRange::one(other)), other);
    EXPECT_EQ(liveness->remote_state(2), RemotePeState::lost);
}

TEST_F(JobLivenessTest, LearnsADeathThatOthersHaveAgreedOn) {
    watch({});
    std::vector<int> dead;
    liveness->survive_deaths();
    liveness->on_dead([&dead](int pe) { dead.push_back(pe); });
    liveness->learn_dead(3);
    EXPECT_EQ(dead, std::vector<int>{3}) << "the transports forget it";
    EXPECT_EQ(liveness->find_dead(everybody), 3);
}

TEST_F(JobLivenessTest, RepeatsAFindingThatCouldNotBeReported) {
    watch({3});
    int calls = 0;
    liveness->survive_deaths();
    liveness->on_own_finding([&calls](int) { return ++calls > 1; });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(liveness->find_dead(everybody), 3);
    EXPECT_EQ(calls, 2);
}

TEST_F(JobLivenessTest, AcknowledgedPesAreNotAwaited) {
    watch({});
    const auto awaited = [this] {
        std::vector<int> pes;
        const PeRange range = liveness->awaited_pes();
        for (int i = 0; i < range.count; ++i) pes.push_back(range.at(i));
        return pes;
    };
    EXPECT_EQ(awaited(), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_FALSE(liveness->is_acknowledged(2));
    liveness->acknowledge(2);
    liveness->acknowledge(2);
    EXPECT_TRUE(liveness->is_acknowledged(2));
    EXPECT_EQ(awaited(), (std::vector<int>{0, 1, 3}));
    liveness->acknowledge(0);
    EXPECT_EQ(awaited(), (std::vector<int>{1, 3}));
    EXPECT_TRUE(liveness->is_acknowledged(0) && liveness->is_acknowledged(2));
    EXPECT_FALSE(liveness->is_acknowledged(3));
}

TEST_F(JobLivenessTest, TerminatesIfRecordsFormACycle) {
    watch({1, 2});
    note(1, 2);
    note(2, 1);
    const auto blamed = liveness->find_dead(PeRange::one(1));
    EXPECT_TRUE(blamed == 1 || blamed == 2);
}

TEST_F(JobLivenessTest, IgnoresARecordThatNamesTheCallerOrNoPe) {
    watch({1});
    note(1, 0);
    EXPECT_EQ(liveness->find_dead(everybody), 1);
    note(1, 17);
    EXPECT_EQ(liveness->find_dead(everybody), 1);
}

TEST_F(JobLivenessTest, ReportsTheDeadPeItselfIfItsBlockIsNotMapped) {
    unmapped = {2};
    watch({2});
    EXPECT_EQ(liveness->find_dead(everybody), 2);
}

TEST_F(JobLivenessTest, FindsAPeOfAnotherHostThatSentItsDeparture) {
    unmapped = {2};
    watch({});
    departed(2, 5);
    EXPECT_EQ(liveness->find_dead({0, 1, 4}), 2);
    EXPECT_EQ(liveness->find_dead({0, 1, 2}), std::nullopt) << "it is not needed there";
}

TEST_F(JobLivenessTest, EachPeOfOtherHostsThatHasSentItsDepartureIsFound) {
    unmapped = {1, 2};
    watch({});
    departed(1, 5);
    departed(2, 5);
    EXPECT_EQ(liveness->find_dead(PeRange::one(1)), 1);
    EXPECT_EQ(liveness->find_dead(PeRange::one(2)), 2);
    EXPECT_EQ(liveness->find_dead(PeRange::one(3)), std::nullopt);
}

TEST_F(JobLivenessTest, DoesNotReportADepartureThatWasReplacedInItsSlot) {
    unmapped = {2};
    watch({});
    departed(2 + static_cast<int>(departure_slots), 5);
    EXPECT_EQ(liveness->find_dead(everybody), std::nullopt);
}

TEST_F(JobLivenessTest, ADepartureAfterTheCurrentBarrierIsIgnored) {
    unmapped = {2};
    watch({});
    departed(2, 6);
    EXPECT_EQ(liveness->find_dead(everybody), std::nullopt);
    barriers = 6;
    EXPECT_EQ(liveness->find_dead(everybody), 2);
}

TEST_F(JobLivenessTest, ADepartureIsFoundWhenTheBarrierCountHasWrapped) {
    unmapped = {2};
    watch({});
    barriers = (std::uint64_t{1} << 32) + 1;
    departed(2, 0xffffffffU);
    EXPECT_EQ(liveness->find_dead(everybody), 2);
}

TEST_F(JobLivenessTest, ChecksProcessesOnlyBeforeItWatches) {
    std::vector<ProcessId> processes(2, this_process());
    processes[1].start += 1;
    JobLiveness early(2, lookup(processes));
    EXPECT_EQ(early.find_dead({0, 1, 2}), 1);
}

}  // namespace

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Returns how many ends the first PE of a job has published after it found that the last PE had ended.
std::uint32_t ends_published_by_a_job_of(int npes) {
    const auto blocks = std::make_unique<ControlBlock[]>(static_cast<std::size_t>(npes));
    std::vector<ProcessId> processes(static_cast<std::size_t>(npes), this_process());
    JobLiveness liveness(npes, [&](int pe) { return processes[static_cast<std::size_t>(pe)]; });
    liveness.watch(
        0, [&](int pe) { return &blocks[static_cast<std::size_t>(pe)]; }, [](std::uint64_t) { return false; },
        [] { return std::uint64_t{0}; });
    ++processes.back().start;
    EXPECT_EQ(liveness.find_dead({0, 1, npes}), npes - 1);
    return blocks[0].ended.load();
}

TEST(JobLivenessOfManyPes, OnePeChecksForAllFrom17PesOn) {
    EXPECT_EQ(ends_published_by_a_job_of(16), 0U) << "each checks for itself";
    EXPECT_EQ(ends_published_by_a_job_of(17), 1U);
}

// The PEs of a large job take turns at checks of all processes. PEs 1 and 70 do not see PE 0's process.
class SweptJob : public ::testing::Test {
protected:
    static constexpr int npes = 100;
    static constexpr PeRange everybody{0, 1, npes};

    SweptJob() : blocks(std::make_unique<ControlBlock[]>(npes)), processes(npes, this_process()) {
        processes[0] = {};
        for (JobLiveness* const each : {&first, &other})
            each->watch(
                each == &first ? 1 : 70, [this](int pe) { return &blocks[static_cast<std::size_t>(pe)]; },
                [](std::uint64_t) { return false; }, [] { return std::uint64_t{0}; });
    }

    void end(int pe) { ++processes[static_cast<std::size_t>(pe)].start; }

    std::unique_ptr<ControlBlock[]> blocks;
    std::vector<ProcessId> processes;
    JobLiveness first{npes, [this](int pe) { return processes[static_cast<std::size_t>(pe)]; }};
    JobLiveness other{npes, [this](int pe) { return processes[static_cast<std::size_t>(pe)]; }};
};

TEST_F(SweptJob, EachPeFindsTheEndsThatOneOfThemHasFound) {
    end(80);
    EXPECT_EQ(first.find_dead(everybody), 80) << "its turn";
    EXPECT_EQ(blocks[1].ended.load(), 1U) << "in the block of the first PE that is visible";
    EXPECT_EQ(other.find_dead(everybody), 80);
    EXPECT_EQ(other.find_dead({0, 1, 80}), std::nullopt) << "it is not needed there";
    EXPECT_EQ(first.find_dead({1, 1, 99}), 80);
}

TEST_F(SweptJob, ANumberThatHasChangedIsASweepForAll) {
    EXPECT_EQ(first.find_dead(everybody), std::nullopt);
    EXPECT_EQ(other.find_dead(everybody), std::nullopt);
    end(99);
    end(5);
    blocks[1].ended.store(2);  // by a third PE
    EXPECT_EQ(first.find_dead(everybody), 5);
    EXPECT_EQ(other.find_dead({10, 1, 90}), 99);
    EXPECT_EQ(first.find_dead(PeRange::one(99)), 99) << "a wait for few PEs";
}

TEST_F(SweptJob, ASweepThatMissesAReusedNumberForgetsNoEnd) {
    end(80);
    EXPECT_EQ(first.find_dead(everybody), 80) << "it reads /proc";
    processes[30] = {std::numeric_limits<pid_t>::max(), 1};
    std::construct_at(&blocks[1].sweeps);  // the next turn, at which nobody reads /proc
    EXPECT_EQ(first.find_dead(everybody), 30);
    EXPECT_EQ(blocks[1].ended.load(), 2U);
    EXPECT_EQ(first.find_dead({31, 1, 69}), 80);
}

TEST_F(SweptJob, AWaitForFewPesReportsWhatItHasFoundAtOnce) {
    first.survive_deaths();
    std::vector<int> reported;
    first.on_own_finding([&reported](int pe) {
        reported.push_back(pe);
        return true;
    });
    EXPECT_EQ(first.find_dead(everybody), std::nullopt) << "it has taken its turn";
    end(30);
    EXPECT_EQ(first.find_dead(PeRange::one(30)), 30);
    EXPECT_EQ(first.find_dead(PeRange::one(30)), 30);
    EXPECT_EQ(reported, std::vector<int>{30});
}

TEST_F(SweptJob, AnOlderSweepDoesNotHideTheEndsOfANewerOne) {
    end(80);
    blocks[1].ended.store(3);
    EXPECT_EQ(first.find_dead(everybody), 80);
    EXPECT_EQ(blocks[1].ended.load(), 3U);
}

// The destructor of the runtime's parts does so, also when a start has failed before the first call.
TEST(JobLiveness, StopsWatching) {
    JobLiveness liveness(2, [](int) { return this_process(); });
    liveness.watch(-1, nullptr, nullptr, nullptr);
    EXPECT_EQ(liveness.find_dead({0, 1, 2}), std::nullopt);
}

TEST(DelayedTask, RunsAfterItsDelay) {
    std::promise<void> worked;
    const auto task = DelayedTask::start(milliseconds(1), [&](const DelayedTask&) { worked.set_value(); });
    ASSERT_NE(task, nullptr);
    worked.get_future().wait();
}

TEST(DelayedTask, DoesNotRunIfCancelledBeforeItsDelay) {
    std::atomic<bool> worked = false;
    DelayedTask::start(hours(1), [&](const DelayedTask&) { worked = true; }).reset();
    EXPECT_FALSE(worked);
}

TEST(DelayedTask, ARunningTaskSeesItsCancellation) {
    std::promise<void> begun;
    bool seen = false;
    auto task = DelayedTask::start(milliseconds(0), [&](const DelayedTask& own) {
        begun.set_value();
        seen = own.wait_for_cancel(hours(1));
    });
    ASSERT_NE(task, nullptr);
    begun.get_future().wait();
    task.reset();
    EXPECT_TRUE(seen);
}

struct Container {
    std::size_t pes;
    std::uint64_t cpus;
    double quota;
};

PeRecords on_one_machine(const std::vector<Container>& containers) {
    PeRecords all;
    for (std::size_t i = 0; i < containers.size(); ++i)
        for (std::size_t pe = 0; pe < containers[i].pes; ++pe) {
            CommonRecord& common = all.common.emplace_back();
            common.process_space = i;
            common.facts.cpu_quota = containers[i].quota;
            common.facts.cpu_mask[0] = containers[i].cpus;
        }
    return all;
}

TEST(PesPerCore, AreThoseOfTheMostCrowdedContainerOrOfTheMachine) {
    const auto most = [](const std::vector<Container>& containers) {
        const PeRecords records = on_one_machine(containers);
        return max_pes_per_core(records, static_cast<int>(records.common.size()));
    };
    EXPECT_DOUBLE_EQ(most({{2, 0b0011, 0}, {2, 0b0011, 0}}), 2) << "the same CPUs";
    EXPECT_DOUBLE_EQ(most({{2, 0b0011, 0}, {2, 0b1100, 0}}), 1) << "CPUs of their own";
    EXPECT_DOUBLE_EQ(most({{2, 0b1111, 2}, {2, 0b1111, 2}}), 1) << "a quota each";
    EXPECT_DOUBLE_EQ(most({{4, ~0ULL, 1}, {1, ~0ULL, 0}}), 4) << "a quota and none";
    EXPECT_DOUBLE_EQ(most({{1, ~0ULL, 8}, {8, ~0ULL, 1}}), 8) << "quotas that differ";
    EXPECT_DOUBLE_EQ(most({{8, 0b11, 0}, {1, ~0b11ULL, 0}}), 4) << "few CPUs and many";
    PeRecords apart = on_one_machine({{2, 0b0011, 0}, {2, 0b0011, 0}});
    for (const std::size_t pe : {2, 3}) apart.common[pe].host.machine = 2;
    EXPECT_DOUBLE_EQ(max_pes_per_core(apart, 4), 1) << "two machines";
}

}  // namespace

}  // namespace npushmem
