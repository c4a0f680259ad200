// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/base/wait.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeWaitOs;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr WaitBudget full_budget{.polls = 10, .spin_for = 5us, .yield_for = 20us};
constexpr WaitBudget crowded_budget{.polls = 0, .spin_for = 0us, .yield_for = 20us};

// True from the n-th check on.
struct ReadyAt {
    int looks_needed;
    int looks = 0;
    bool operator()() { return ++looks >= looks_needed; }
};

class FakeLiveness final : public Liveness {
public:
    explicit FakeLiveness(FakeWaitOs& os) : os_(os) {}

    std::optional<int> find_dead(const PeRange& pes) override {
        asked_at.push_back(os_.time());
        asked_about = pes;
        if (on_ask) on_ask();
        return dead;
    }

    std::optional<int> dead;
    PeRange asked_about;
    std::vector<nanoseconds> asked_at;
    std::function<void()> on_ask;

private:
    FakeWaitOs& os_;
};

struct Wait : ::testing::Test {
    FakeWaitOs os;
    WaitCounters counters;
    FakeLiveness liveness{os};
    WaitFailure failure;
};

TEST_F(Wait, ATrueConditionIsCheckedOnce) {
    const Waiter waiter(full_budget, os, counters);
    ReadyAt ready{1};
    EXPECT_EQ(waiter.until(ready, {}), Code::ok);
    EXPECT_EQ(ready.looks, 1);
    EXPECT_EQ(counters.waits, 0U);
    EXPECT_EQ(os.time(), 1ms);
}

TEST_F(Wait, ShortWaitsReadNoClock) {
    const Waiter waiter(full_budget, os, counters);
    EXPECT_EQ(waiter.until(ReadyAt{30}, {}), Code::ok);
    EXPECT_EQ(counters.waits, 1U);
    EXPECT_GT(counters.spins, 0U);
    EXPECT_EQ(counters.yields, 0U);
    EXPECT_EQ(os.time(), 1ms);
}

TEST_F(Wait, DrivesTheTransportsAfterFewSpins) {
    int drives = 0;
    const WaitProgress progress{[&] { ++drives; }, true};
    const Waiter waiter(full_budget, os, counters, nullptr, &progress);
    EXPECT_EQ(waiter.until([&] { return drives == 3; }, {}), Code::ok);
    EXPECT_EQ(counters.spins, 3U * 4);
    EXPECT_EQ(counters.yields, 0U);
}

TEST_F(Wait, SpinsThenYieldsThenSleeps) {
    const Waiter waiter(full_budget, os, counters);
    std::vector<std::uint64_t> spins_when_yielding;
    os.on_yield = [&] { spins_when_yielding.push_back(os.sleeps.size()); };
    EXPECT_EQ(waiter.until([&] { return os.sleeps.size() == 3; }, {}), Code::ok);
    EXPECT_GE(counters.spins, 32U * 5);
    EXPECT_GE(os.yields, 8U);
    EXPECT_THAT(spins_when_yielding, Each(0U)) << "yielded after the first sleep";
    EXPECT_THAT(os.sleeps, ElementsAre(50us, 100us, 200us));
    EXPECT_EQ(counters.sleeps, 3U);
    EXPECT_EQ(counters.yields, os.yields);
}

class CountingObserver final : public WaitObserver {
public:
    void observe(const void* id, const WaitFor& wait, nanoseconds began, nanoseconds now) override {
        lengths.push_back(now - began);
        what = wait.what;
        observed = id;
    }
    void end(const void* id) override {
        ++ends;
        EXPECT_EQ(id, observed);
    }

    std::vector<nanoseconds> lengths;
    std::string what;
    const void* observed = nullptr;
    int ends = 0;
};

TEST_F(Wait, OnlyLongWaitsAreObserved) {
    CountingObserver observer;
    const Waiter waiter(full_budget, os, counters, nullptr, nullptr, &observer);
    EXPECT_EQ(waiter.until([&] { return os.time() > 9ms; }, {}), Code::ok);
    EXPECT_THAT(observer.lengths, SizeIs(0));
    EXPECT_EQ(observer.ends, 0);
    const nanoseconds until = os.time() + 30ms;
    EXPECT_EQ(waiter.until([&] { return os.time() > until; }, {.what = "the flag"}), Code::ok);
    EXPECT_GE(observer.lengths.size(), 5U);
    EXPECT_GE(observer.lengths.front(), 10ms);
    EXPECT_LE(observer.lengths.front(), 20ms);
    EXPECT_EQ(observer.what, "the flag");
    EXPECT_EQ(observer.ends, 1);
}

TEST_F(Wait, SleepsDoubleUpToTwoMilliseconds) {
    const Waiter waiter(crowded_budget, os, counters);
    EXPECT_EQ(waiter.until([&] { return os.sleeps.size() == 9; }, {}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(2ms)));
    EXPECT_EQ(os.sleeps.back(), 2ms);
}

TEST_F(Wait, ALongWaitSleepsForAHundredthOfItself) {
    const Waiter waiter(crowded_budget, os, counters);
    const nanoseconds begin = os.time();
    nanoseconds longest{0};
    EXPECT_EQ(waiter.until(
                  [&] {
                      if (!os.sleeps.empty()) {
                          EXPECT_LE(os.sleeps.back(), std::max<nanoseconds>((os.time() - begin) / 100, 2ms));
                          longest = std::max(longest, os.sleeps.back());
                      }
                      return os.time() > begin + 60s;
                  },
                  {}),
              Code::ok);
    EXPECT_EQ(longest, 250ms);
    EXPECT_LE(os.sleeps.size(), 1000U);
}

TEST_F(Wait, ALongWaitWithProgressSleepsWithinTheBudget) {
    const WaitProgress progress{[] {}};
    const Waiter waiter(crowded_budget, os, counters, nullptr, &progress);
    const nanoseconds begin = os.time();
    EXPECT_EQ(waiter.until([&] { return os.time() > begin + 10s; }, {}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(crowded_budget.longest_sleep)));
}

TEST_F(Wait, ALongStepwiseWaitSleepsWithinTheBudget) {
    const Waiter waiter(crowded_budget, os, counters);
    const nanoseconds begin = os.time();
    EXPECT_EQ(waiter.until([&] { return os.time() > begin + 10s; }, {.is_stepwise = true}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(crowded_budget.longest_sleep)));
}

TEST_F(Wait, ACrowdedHostYieldsAtOnce) {
    const Waiter waiter(crowded_budget, os, counters);
    int looks = 0;
    EXPECT_EQ(waiter.until([&] { return ++looks, os.yields == 1; }, {}), Code::ok);
    EXPECT_EQ(looks, 3);
    EXPECT_EQ(counters.spins, 0U);
}

TEST_F(Wait, EndsAtTheDeadlineAndSleepsNoLonger) {
    const Waiter waiter(full_budget, os, counters);
    EXPECT_EQ(waiter.until([] { return false; }, {.timeout = 7ms}, &failure), Code::timeout);
    EXPECT_EQ(failure.code, Code::timeout);
    EXPECT_GE(failure.waited, 7ms);
    EXPECT_LE(failure.waited, 7ms + 10us);
}

TEST_F(Wait, ADeadlineInTheSpinStageEndsTheWaitWithoutYield) {
    const Waiter waiter(full_budget, os, counters);
    EXPECT_EQ(waiter.until([] { return false; }, {.timeout = 1us}, &failure), Code::timeout);
    EXPECT_EQ(counters.yields, 0U);
}

TEST_F(Wait, ChecksLivenessAtGrowingIntervals) {
    const Waiter waiter(full_budget, os, counters, &liveness);
    const nanoseconds begin = os.time();
    EXPECT_EQ(waiter.until([&] { return os.time() > begin + 2s; }, {.needs = PeRange{4, 2, 3}}), Code::ok);
    ASSERT_THAT(liveness.asked_at, SizeIs(::testing::Ge(5U)));
    EXPECT_EQ(liveness.asked_about.at(2), 8);
    nanoseconds last = begin;
    nanoseconds last_gap{0};
    for (const nanoseconds at : liveness.asked_at) {
        EXPECT_GE(at - last, 10ms);
        EXPECT_LE(at - last, 253ms) << "a death must be noticed well within a second";
        EXPECT_GE(at - last + 3ms, last_gap) << "the interval shrank";
        last_gap = at - last;
        last = at;
    }
    EXPECT_EQ(counters.liveness_checks, liveness.asked_at.size());
}

TEST_F(Wait, ChecksFollowTheBudget) {
    WaitBudget budget = full_budget;
    budget.first_check = 300ms;
    budget.longest_check = 1s;
    const Waiter waiter(budget, os, counters, &liveness);
    const nanoseconds begin = os.time();
    EXPECT_EQ(waiter.until([&] { return os.time() > begin + 4s; }, {.needs = PeRange{0, 1, 1024}}), Code::ok);
    ASSERT_THAT(liveness.asked_at, SizeIs(5));
    const nanoseconds gaps[] = {300ms, 600ms, 1s, 1s, 1s};
    for (std::size_t i = 0; i < 5; ++i) {
        const nanoseconds gap = liveness.asked_at[i] - (i == 0 ? begin : liveness.asked_at[i - 1]);
        EXPECT_GE(gap, gaps[i]) << i;
        EXPECT_LE(gap, gaps[i] + 3ms) << i;
    }
}

TEST_F(Wait, ADeadPeEndsTheWait) {
    const Waiter waiter(full_budget, os, counters, &liveness);
    liveness.dead = 5;
    const WaitFor what{.what = "the release", .needs = PeRange{4, 1, 4}};
    EXPECT_EQ(waiter.until([] { return false; }, what, &failure), Code::peer_dead);
    EXPECT_EQ(failure.dead_pe, 5);
    EXPECT_LT(failure.waited, 13ms);
}

TEST_F(Wait, SeesWritesOfAPeBeforeItsDeath) {
    const Waiter waiter(full_budget, os, counters, &liveness);
    bool written = false;
    liveness.dead = 5;
    liveness.on_ask = [&] { written = true; };
    EXPECT_EQ(waiter.until([&] { return written; }, {.needs = PeRange::one(5)}, &failure), Code::ok);
}

TEST_F(Wait, AWaitWithoutPesChecksNoLiveness) {
    const Waiter waiter(full_budget, os, counters, &liveness);
    liveness.dead = 5;
    EXPECT_EQ(waiter.until([] { return false; }, {.timeout = 1s}, &failure), Code::timeout);
    EXPECT_THAT(liveness.asked_at, SizeIs(0));
}

TEST_F(Wait, DrivesProgressInEveryStage) {
    int calls = 0;
    const WaitProgress progress{[&] { ++calls; }};
    const Waiter waiter(full_budget, os, counters, nullptr, &progress);
    int at_first_yield = -1;
    int at_first_sleep = -1;
    os.on_yield = [&] { at_first_yield = at_first_yield < 0 ? calls : at_first_yield; };
    os.on_sleep = [&] { at_first_sleep = at_first_sleep < 0 ? calls : at_first_sleep; };
    EXPECT_EQ(waiter.until([&] { return os.sleeps.size() == 2; }, {}), Code::ok);
    EXPECT_GT(at_first_yield, 0);
    EXPECT_GT(at_first_sleep, at_first_yield);
    EXPECT_GT(calls, at_first_sleep);
}

TEST_F(Wait, ProgressCanMakeTheConditionTrue) {
    bool arrived = false;
    const WaitProgress progress{[&] { arrived = true; }};
    const Waiter waiter(full_budget, os, counters, nullptr, &progress);
    EXPECT_EQ(waiter.until([&] { return arrived; }, {}), Code::ok);
    EXPECT_EQ(counters.yields, 0U);
}

TEST_F(Wait, IgnoresAnEmptyProgressFunction) {
    const WaitProgress progress;
    const Waiter waiter(full_budget, os, counters, nullptr, &progress);
    EXPECT_EQ(waiter.until(ReadyAt{100}, {}), Code::ok);
}

// Sleeps as long as allowed and records the duration.
class TimingParking final : public Parking {
public:
    void announce() override {}
    void park(WaitOs& os, nanoseconds longest) override { os.sleep(longest); }
    void retract() override {}
};

TEST_F(Wait, AParkedWaiterSleepsUntilTheNextLivenessCheck) {
    const Waiter waiter(crowded_budget, os, counters, &liveness);
    TimingParking parking;
    const WaitFor what{.needs = PeRange::one(1), .parking = &parking};
    EXPECT_EQ(waiter.until([&] { return os.time() > 5s; }, what), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(250ms)));
    EXPECT_EQ(os.sleeps.size(), liveness.asked_at.size());
    EXPECT_LT(os.sleeps.size(), 30U);
    EXPECT_EQ(counters.parks, os.sleeps.size());
}

TEST_F(Wait, ASleeperThatNobodyWakesFindsAStoreBeforeTheNextCheck) {
    WaitBudget budget = crowded_budget;
    budget.first_check = budget.longest_check = 1s;
    const Waiter waiter(budget, os, counters, &liveness);
    for (const bool writers_wake : {false, true}) {
        TimingParking parking;
        os.sleeps.clear();
        WaitFor what{.needs = PeRange::one(3), .parking = &parking, .writers_wake = writers_wake};
        const nanoseconds begin = os.time();
        EXPECT_EQ(waiter.until([&] { return os.time() > begin + 3s; }, what), Code::ok);
        EXPECT_EQ(*std::ranges::max_element(os.sleeps), writers_wake ? 1s : 250ms);
    }
}

TEST_F(Wait, AParkedWaiterWithoutPesSleepsLong) {
    const Waiter waiter(crowded_budget, os, counters);
    TimingParking parking;
    EXPECT_EQ(waiter.until([&] { return os.time() > 5s; }, {.parking = &parking}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(nanoseconds(250ms)));
}

constexpr WaitBudget long_crowded_budget{.polls = 0, .spin_for = 0us, .yield_for = 500us};

// Returns how long the wait has yielded when it first sleeps.
nanoseconds time_to_first_sleep(FakeWaitOs& os, const WaitBudget& budget, Parking* parking,
                                const WaitProgress* progress = nullptr, bool writers_wake = true) {
    WaitCounters counters;
    const Waiter waiter(budget, os, counters, nullptr, progress);
    const nanoseconds begin = os.time();
    nanoseconds slept_at{0};
    os.on_sleep = [&] { slept_at = slept_at == 0ns ? os.time() - os.sleeps.front() : slept_at; };
    EXPECT_EQ(waiter.until([&] { return !os.sleeps.empty(); },
                           {.parking = parking, .writers_wake = parking != nullptr && writers_wake}),
              Code::ok);
    return slept_at - begin;
}

TEST_F(Wait, AParkedWaiterSleepsEarlyWhenYieldsDoNotFreeTheCore) {
    TimingParking parking;
    os.is_kept_running = true;
    EXPECT_LE(time_to_first_sleep(os, long_crowded_budget, &parking), nanoseconds(40us));
}

TEST_F(Wait, AParkedWaiterYieldsForTheWholeBudgetWhileOthersRun) {
    TimingParking parking;
    EXPECT_GE(time_to_first_sleep(os, long_crowded_budget, &parking), nanoseconds(500us));
}

TEST_F(Wait, AParkedWaiterThatAWriterMayNotWakeYieldsForTheWholeBudget) {
    TimingParking parking;
    os.is_kept_running = true;
    EXPECT_GE(time_to_first_sleep(os, long_crowded_budget, &parking, nullptr, false), nanoseconds(500us));
}

TEST_F(Wait, WithoutABudgetForYieldsAWaiterSleepsAtOnce) {
    constexpr WaitBudget no_yields{.polls = 0, .spin_for = 0us, .yield_for = 0us};
    TimingParking parking;
    EXPECT_LE(time_to_first_sleep(os, no_yields, &parking), nanoseconds(1us));
    os.sleeps.clear();
    EXPECT_LE(time_to_first_sleep(os, no_yields, nullptr), nanoseconds(1us));
    EXPECT_EQ(os.yields, 0U);
}

TEST_F(Wait, OnlyAParkedWaiterOfACrowdedHostSleepsEarly) {
    TimingParking parking;
    os.is_kept_running = true;
    EXPECT_GE(time_to_first_sleep(os, long_crowded_budget, nullptr), nanoseconds(500us)) << "nobody would wake it";
    os.sleeps.clear();
    constexpr WaitBudget own_core{.polls = 10, .spin_for = 5us, .yield_for = 500us};
    EXPECT_GE(time_to_first_sleep(os, own_core, &parking), nanoseconds(500us)) << "nobody else needs its core";
}

TEST_F(Wait, AParkedWaiterSleepsEarlyOnlyIfArrivalsWakeItToo) {
    TimingParking parking;
    os.is_kept_running = true;
    const WaitProgress reports{[] {}, true};
    EXPECT_LE(time_to_first_sleep(os, long_crowded_budget, &parking, &reports), nanoseconds(40us));
    os.sleeps.clear();
    const WaitProgress is_driven{[] {}, false};
    EXPECT_GE(time_to_first_sleep(os, long_crowded_budget, &parking, &is_driven), nanoseconds(500us));
}

TEST_F(Wait, ShortWaitsDoNotReadTheirRunTime) {
    TimingParking parking;
    const Waiter waiter(long_crowded_budget, os, counters);
    os.on_run_time = [] { ADD_FAILURE(); };
    EXPECT_EQ(waiter.until([&] { return os.yields == 8; }, {.parking = &parking, .writers_wake = true}), Code::ok);
}

TEST_F(Wait, ADeadlineEndsAParkedSleep) {
    const Waiter waiter(crowded_budget, os, counters);
    TimingParking parking;
    const auto begin = os.time();
    EXPECT_EQ(waiter.until([] { return false; }, {.timeout = 300ms, .parking = &parking}, &failure), Code::timeout);
    EXPECT_THAT(os.time() - begin, Le(nanoseconds(301ms)));
}

TEST_F(Wait, AParkedWaiterWithProgressSleepsWithinTheBudget) {
    const WaitProgress progress{[] {}};
    const Waiter waiter(crowded_budget, os, counters, nullptr, &progress);
    TimingParking parking;
    EXPECT_EQ(waiter.until([&] { return os.time() > 1s; }, {.parking = &parking}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(crowded_budget.longest_sleep)));
}

TEST_F(Wait, AParkedWaiterSleepsLongerWhenTheTransportsReportArrivals) {
    int drives = 0;
    const WaitProgress progress{[&] { ++drives; }, true};
    const Waiter waiter(crowded_budget, os, counters, nullptr, &progress);
    TimingParking parking;
    const nanoseconds begin = os.time();
    const auto ready = [&] {
        if (!os.sleeps.empty()) {
            EXPECT_LE(os.sleeps.back(), std::max<nanoseconds>((os.time() - begin) / 32, 2ms));
        }
        return os.time() > begin + 60s;
    };
    EXPECT_EQ(waiter.until(ready, {.parking = &parking}), Code::ok);
    EXPECT_EQ(os.sleeps.back(), 250ms);
    EXPECT_LE(os.sleeps.size(), 500U);
    EXPECT_GE(drives, static_cast<int>(os.sleeps.size())) << "also what this PE has posted may need it";
}

TEST_F(Wait, OtherWaitsDriveTransportsThatReportArrivalsAtThePaceOfTheBudget) {
    const WaitProgress progress{[] {}, true};
    const Waiter waiter(crowded_budget, os, counters, nullptr, &progress);
    EXPECT_EQ(waiter.until([&] { return os.time() > 10s; }, {}), Code::ok);
    TimingParking parking;
    EXPECT_EQ(waiter.until([&] { return os.time() > 20s; }, {.parking = &parking, .is_stepwise = true}), Code::ok);
    EXPECT_THAT(os.sleeps, Each(Le(crowded_budget.longest_sleep)));
}

TEST_F(Wait, CountsTheTimeOfLongWaits) {
    const Waiter waiter(crowded_budget, os, counters);
    const auto begin = os.time();
    EXPECT_EQ(waiter.until([&] { return os.time() - begin > 10ms; }, {}), Code::ok);
    EXPECT_GT(counters.time, 9'000'000U);
    EXPECT_LE(counters.time, static_cast<std::uint64_t>((os.time() - begin).count()));
}

TEST_F(Wait, CountsWokenSleepers) {
    const Waiter waiter(full_budget, os, counters);
    waiter.count_woken(2);
    waiter.count_woken(1);
    EXPECT_EQ(waiter.counters().wakes, 3U);
}

// Records the order of calls: the order is the contract.
class LoggingParking final : public Parking {
public:
    explicit LoggingParking(std::vector<std::string>& log) : log_(log) {}
    void announce() override { log_.emplace_back("announce"); }
    void park(WaitOs&, nanoseconds) override { log_.emplace_back("park"); }
    void retract() override { log_.emplace_back("retract"); }

private:
    std::vector<std::string>& log_;
};

TEST_F(Wait, ChecksAgainBetweenAnnouncingAndParking) {
    std::vector<std::string> log;
    LoggingParking parking(log);
    const Waiter waiter(crowded_budget, os, counters);
    const auto ready = [&] {
        if (!log.empty()) log.emplace_back("look");
        return log.size() > 7;
    };
    EXPECT_EQ(waiter.until(ready, {.parking = &parking}), Code::ok);
    EXPECT_THAT(
        log, ElementsAre("announce", "look", "park", "retract", "look", "announce", "look", "park", "retract", "look"));
    EXPECT_THAT(os.sleeps, SizeIs(0));
}

TEST_F(Wait, RetractsWhenTheSecondCheckSucceeds) {
    std::vector<std::string> log;
    LoggingParking parking(log);
    const Waiter waiter(crowded_budget, os, counters);
    EXPECT_EQ(waiter.until([&] { return !log.empty(); }, {.parking = &parking}), Code::ok);
    EXPECT_THAT(log, ElementsAre("announce", "retract"));
}

TEST(DescribeWait, ReportsDurationSourceCauseAndValues) {
    const WaitFor what{.what = "the release of a barrier", .needs = PeRange{2, 2, 3}};
    const WaitFailure dead{Code::peer_dead, 4, 1500ms};
    EXPECT_EQ(describe(what, dead, 8, 7),
              "waited 1.500 s for the release of a barrier from PEs 2 to 6: PE 4 has died or finalized (expected 8 or "
              "later, last saw "
              "7)");
    const int listed[] = {7, 0, 3};
    const WaitFor some{.what = "a flag", .needs = {.count = 3, .table = listed}};
    EXPECT_THAT(describe(some, dead), HasSubstr("a flag from PEs 7, 0, 3: PE 4 has died"));
    const WaitFor one{.what = "a flag", .needs = PeRange::one(3)};
    EXPECT_THAT(describe(one, {Code::timeout, -1, 2s}, 1, 0), HasSubstr("a flag from PE 3: timed out"));
}

}  // namespace

}  // namespace npushmem
