// SPDX-License-Identifier: BSD-3-Clause
// A clock that only the test advances; each reading costs the time that the test sets.
#include <gmock/gmock.h>

#include <deque>
#include <set>

#include "bench/engine/engine.hpp"

namespace npushmem::fakes {

class FakeClock final : public bench::Clock {
public:
    explicit FakeClock(std::chrono::nanoseconds reading = {}) : reading_(reading) {}

    std::chrono::nanoseconds now() override { return now_ += reading_; }
    void pass(std::chrono::nanoseconds time) { now_ += time; }

private:
    std::chrono::nanoseconds reading_;
    std::chrono::nanoseconds now_{0};
};

}  // namespace npushmem::fakes

namespace npushmem::bench {

namespace {

using std::chrono::nanoseconds;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Records the commands that it broadcasts, and receives prepared ones.
class RecordingWorkerGroup final : public WorkerGroup {
public:
    explicit RecordingWorkerGroup(bool is_leader) : is_leader_(is_leader) {}

    [[nodiscard]] bool is_leader() const override { return is_leader_; }
    void broadcast(const BatchCommand& command) override { sent.push_back(command); }
    BatchCommand receive() override {
        if (commands.empty()) return {};
        const BatchCommand next = commands.front();
        commands.pop_front();
        return next;
    }

    std::vector<BatchCommand> sent;
    std::deque<BatchCommand> commands;

private:
    bool is_leader_;
};

class EngineTest : public testing::Test {
protected:
    // An operation with this duration, and `first` more the first time.
    Variant taking(nanoseconds each, bool baseline = true, nanoseconds first = {}) {
        return {"thing",
                [this, each, first, cold = true](std::uint64_t iterations) mutable {
                    batches_.push_back(iterations);
                    clock_.pass(each * iterations + (cold ? first : nanoseconds{}));
                    cold = false;
                },
                baseline};
    }

    static Point point(std::vector<Variant> variants) { return {.name = "point", .variants = std::move(variants)}; }

    static constexpr EngineSettings settings_{.rounds = 5, .batch = nanoseconds{10'000}, .max_iterations = 5'000};

    fakes::FakeClock clock_{nanoseconds{20}};
    std::vector<std::uint64_t> batches_;
    SoloWorkerGroup solo_;
};

TEST_F(EngineTest, SubtractsTheCostOfTheClock) {
    Engine engine(clock_, settings_);
    EXPECT_EQ(engine.clock_ns(), 20);
    const auto result = engine.measure(point({taking(nanoseconds{100}, false)}), solo_);
    ASSERT_THAT(result.variants, SizeIs(1));
    EXPECT_THAT(result.variants[0].samples, SizeIs(5));
    EXPECT_THAT(result.variants[0].samples, Each(100));
    EXPECT_EQ(result.variants[0].time.median, 100);
}

TEST_F(EngineTest, BatchesLastAboutTheConfiguredTime) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{100})}), solo_);
    EXPECT_GE(result.variants[0].iterations, 50U);   // half of 10 us
    EXPECT_LE(result.variants[0].iterations, 200U);  // twice as long
}

TEST_F(EngineTest, RunsASlowVariantOncePerBatch) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{1'000'000})}), solo_);
    EXPECT_EQ(result.variants[0].iterations, 1U);
    EXPECT_THAT(batches_, SizeIs(2 + 5));  // two to warm up, one for each round
}

TEST_F(EngineTest, AColdFirstBatchDoesNotSpoilTheCalibration) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{100}, true, nanoseconds{1'000'000})}), solo_);
    EXPECT_GE(result.variants[0].iterations, 50U);
    EXPECT_THAT(result.variants[0].samples, Each(100));
}

TEST_F(EngineTest, LimitsAVariantWithoutDurationToMaxIterations) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{0})}), solo_);
    EXPECT_EQ(result.variants[0].iterations, settings_.max_iterations);
    EXPECT_THAT(result.variants[0].samples, Each(0));
}

TEST_F(EngineTest, DividesTimesByTheNumberOfParts) {
    Engine engine(clock_, settings_);
    Point halves = point({taking(nanoseconds{100})});
    halves.parts = 2;
    EXPECT_EQ(engine.measure(halves, solo_).variants[0].time.median, 50);
}

TEST_F(EngineTest, ReportsTheRatioToEachBaseline) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(
        point({taking(nanoseconds{300}, false), taking(nanoseconds{100}), taking(nanoseconds{600})}), solo_);
    EXPECT_DOUBLE_EQ(result.variants[0].ratio.median, 1);
    EXPECT_DOUBLE_EQ(result.variants[1].ratio.median, 3);
    EXPECT_DOUBLE_EQ(result.variants[2].ratio.median, 0.5);
    EXPECT_DOUBLE_EQ(result.variants[2].ratio.mad, 0);
}

// A slowdown of all variants of a round does not change the ratio.
TEST_F(EngineTest, RatiosArePairedWithinARound) {
    std::uint64_t calls = 0;
    auto drifting = [&](int each) {
        return Variant{"drifting",
                       [this, each, &calls](std::uint64_t iterations) {
                           // two batches a round, after two warm-up batches for each of the two variants
                           const std::uint64_t round = calls++ < 4 ? 0 : (calls - 5) / 2;
                           clock_.pass(nanoseconds{each} * iterations * (1 + round));
                       },
                       true};
    };
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({drifting(2'000'000), drifting(1'000'000)}), solo_);
    EXPECT_EQ(result.variants[0].time.median, 6'000'000);
    EXPECT_DOUBLE_EQ(result.variants[1].ratio.median, 2);
    EXPECT_DOUBLE_EQ(result.variants[1].ratio.mad, 0);
}

TEST_F(EngineTest, AlternatesTheFirstVariant) {
    Engine engine(clock_, settings_);
    RecordingWorkerGroup worker_group(true);
    (void)engine.measure(point({taking(nanoseconds{1'000'000}), taking(nanoseconds{1'000'000})}), worker_group);
    std::vector<std::uint32_t> order;
    for (std::size_t i = 4; i < 8; ++i) order.push_back(worker_group.sent[i].variant);
    EXPECT_THAT(order, ElementsAre(0, 1, 1, 0));
}

TEST_F(EngineTest, RunsEachVariantAfterEachOther) {
    EngineSettings settings = settings_;
    settings.rounds = 6;
    Engine engine(clock_, settings);
    RecordingWorkerGroup worker_group(true);
    const auto slow = taking(nanoseconds{1'000'000});
    (void)engine.measure(point({slow, slow, slow}), worker_group);
    std::set<std::pair<std::uint32_t, std::uint32_t>> neighbours;
    for (std::size_t i = 6; i + 1 < worker_group.sent.size() - 1; ++i) {
        if ((i - 6) % 3 != 2) neighbours.emplace(worker_group.sent[i].variant, worker_group.sent[i + 1].variant);
    }
    EXPECT_THAT(neighbours, SizeIs(6));
}

TEST_F(EngineTest, TheLeaderBroadcastsEveryBatchAndStopsInTheEnd) {
    Engine engine(clock_, settings_);
    RecordingWorkerGroup worker_group(true);
    (void)engine.measure(point({taking(nanoseconds{1'000'000})}), worker_group);
    ASSERT_THAT(worker_group.sent, SizeIs(batches_.size() + 1));
    for (std::size_t i = 0; i < batches_.size(); ++i) EXPECT_EQ(worker_group.sent[i].iterations, batches_[i]);
    EXPECT_EQ(worker_group.sent.back().variant, BatchCommand::stop);
}

TEST_F(EngineTest, OtherPesRunTheCommandsOfTheLeader) {
    Engine engine(clock_, settings_);
    RecordingWorkerGroup worker_group(false);
    worker_group.commands = {{0, 1}, {0, 7}, {0, 7}};
    const auto result = engine.measure(point({taking(nanoseconds{5})}), worker_group);
    EXPECT_THAT(batches_, ElementsAre(1, 7, 7));
    EXPECT_THAT(result.variants, IsEmpty());
    EXPECT_THAT(worker_group.sent, IsEmpty());
}

TEST_F(EngineTest, StopsAtACommandWithoutAVariant) {
    Engine engine(clock_, settings_);
    RecordingWorkerGroup worker_group(false);
    worker_group.commands = {{1, 3}, {0, 3}};
    (void)engine.measure(point({taking(nanoseconds{5})}), worker_group);
    EXPECT_THAT(batches_, IsEmpty());
}

}  // namespace

}  // namespace npushmem::bench
