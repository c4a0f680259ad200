#include "bench/engine/engine.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <set>

#include "tests/fakes/fake_clock.hpp"

namespace npushmem::bench {
namespace {

using std::chrono::nanoseconds;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Writes down what it was told to give, and gives what it was told to receive.
class RecordingCrew final : public Crew {
public:
    explicit RecordingCrew(bool leads) : leads_(leads) {}

    [[nodiscard]] bool leads() const override { return leads_; }
    void give(const Order& order) override { given.push_back(order); }
    Order receive() override {
        if (orders.empty()) return {};
        const Order next = orders.front();
        orders.pop_front();
        return next;
    }

    std::vector<Order> given;
    std::deque<Order> orders;

private:
    bool leads_;
};

class EngineTest : public testing::Test {
protected:
    // A thing that takes this long each time, and `first` more the first time.
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

    static constexpr EngineSettings settings_{.rounds = 5, .batch = nanoseconds{10'000}, .most_iterations = 5'000};

    fakes::FakeClock clock_{nanoseconds{20}};
    std::vector<std::uint64_t> batches_;
    SoloCrew solo_;
};

TEST_F(EngineTest, TakesTheClocksOwnCostOff) {
    Engine engine(clock_, settings_);
    EXPECT_EQ(engine.clock_ns(), 20);
    const auto result = engine.measure(point({taking(nanoseconds{100}, false)}), solo_);
    ASSERT_THAT(result.variants, SizeIs(1));
    EXPECT_THAT(result.variants[0].samples, SizeIs(5));
    EXPECT_THAT(result.variants[0].samples, Each(100));
    EXPECT_EQ(result.variants[0].time.median, 100);
}

TEST_F(EngineTest, BatchesLastAboutAsLongAsAsked) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{100})}), solo_);
    EXPECT_GE(result.variants[0].iterations, 50U);   // half of 10 us
    EXPECT_LE(result.variants[0].iterations, 200U);  // twice as long
}

TEST_F(EngineTest, SomethingSlowIsDoneOnceAtATime) {
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

TEST_F(EngineTest, SomethingThatTakesNoTimeEndsAtTheMostIterations) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(point({taking(nanoseconds{0})}), solo_);
    EXPECT_EQ(result.variants[0].iterations, settings_.most_iterations);
    EXPECT_THAT(result.variants[0].samples, Each(0));
}

TEST_F(EngineTest, DividesByTheParts) {
    Engine engine(clock_, settings_);
    Point halves = point({taking(nanoseconds{100})});
    halves.parts = 2;
    EXPECT_EQ(engine.measure(halves, solo_).variants[0].time.median, 50);
}

TEST_F(EngineTest, GivesTheRatioToEachBaseline) {
    Engine engine(clock_, settings_);
    const auto result = engine.measure(
        point({taking(nanoseconds{300}, false), taking(nanoseconds{100}), taking(nanoseconds{600})}), solo_);
    EXPECT_DOUBLE_EQ(result.variants[0].ratio.median, 1);
    EXPECT_DOUBLE_EQ(result.variants[1].ratio.median, 3);
    EXPECT_DOUBLE_EQ(result.variants[2].ratio.median, 0.5);
    EXPECT_DOUBLE_EQ(result.variants[2].ratio.mad, 0);
}

// What slows all variants of a round down alike leaves the ratio alone.
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

TEST_F(EngineTest, VariantsTakeTurnsInBeingFirst) {
    Engine engine(clock_, settings_);
    RecordingCrew crew(true);
    (void)engine.measure(point({taking(nanoseconds{1'000'000}), taking(nanoseconds{1'000'000})}), crew);
    std::vector<std::uint32_t> order;
    for (std::size_t i = 4; i < 8; ++i) order.push_back(crew.given[i].variant);
    EXPECT_THAT(order, ElementsAre(0, 1, 1, 0));
}

TEST_F(EngineTest, EachVariantFollowsEachOther) {
    EngineSettings settings = settings_;
    settings.rounds = 6;
    Engine engine(clock_, settings);
    RecordingCrew crew(true);
    const auto slow = taking(nanoseconds{1'000'000});
    (void)engine.measure(point({slow, slow, slow}), crew);
    std::set<std::pair<std::uint32_t, std::uint32_t>> neighbours;
    for (std::size_t i = 6; i + 1 < crew.given.size() - 1; ++i) {
        if ((i - 6) % 3 != 2) neighbours.emplace(crew.given[i].variant, crew.given[i + 1].variant);
    }
    EXPECT_THAT(neighbours, SizeIs(6));
}

TEST_F(EngineTest, TheLeaderOrdersEveryBatchAndStopsInTheEnd) {
    Engine engine(clock_, settings_);
    RecordingCrew crew(true);
    (void)engine.measure(point({taking(nanoseconds{1'000'000})}), crew);
    ASSERT_THAT(crew.given, SizeIs(batches_.size() + 1));
    for (std::size_t i = 0; i < batches_.size(); ++i) EXPECT_EQ(crew.given[i].iterations, batches_[i]);
    EXPECT_EQ(crew.given.back().variant, Order::stop);
}

TEST_F(EngineTest, TheOthersDoAsTheyAreTold) {
    Engine engine(clock_, settings_);
    RecordingCrew crew(false);
    crew.orders = {{0, 1}, {0, 7}, {0, 7}};
    const auto result = engine.measure(point({taking(nanoseconds{5})}), crew);
    EXPECT_THAT(batches_, ElementsAre(1, 7, 7));
    EXPECT_THAT(result.variants, IsEmpty());
    EXPECT_THAT(crew.given, IsEmpty());
}

TEST_F(EngineTest, AnOrderForNoVariantStops) {
    Engine engine(clock_, settings_);
    RecordingCrew crew(false);
    crew.orders = {{1, 3}, {0, 3}};
    (void)engine.measure(point({taking(nanoseconds{5})}), crew);
    EXPECT_THAT(batches_, IsEmpty());
}

}  // namespace
}  // namespace npushmem::bench
