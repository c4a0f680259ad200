// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/simulation.hpp"

#include <gmock/gmock.h>

namespace npushmem::simulate {
namespace {

// o <= g, as the formulas assume. All members on nodes of their own.
constexpr Model far{.node = {.latency = 100, .overhead = 10, .gap = 20},
                    .network = {.latency = 1000, .overhead = 50, .gap = 70}};
constexpr double one_way = 1000 + 2 * 50;  // L + 2o

barrier::Plan plan_of(std::string_view name) {
    auto plan = barrier::parse_plan(name);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.value();
}

Outcome run(std::string_view name, int members, int per_node = 1, const Model& model = far) {
    auto outcome = simulate(plan_of(name), {members, per_node}, model);
    EXPECT_TRUE(outcome.ok()) << name << ": " << outcome.status().message();
    return outcome.ok() ? outcome.value() : Outcome{};
}

// The formulas of the cost models, exactly.

TEST(Simulation, DisseminationTakesItsRounds) {
    for (const char* name : {"dissemination", "bruck", "recursive_doubling"}) {
        EXPECT_DOUBLE_EQ(run(name, 2).nanoseconds, one_way) << name;
        EXPECT_DOUBLE_EQ(run(name, 16).nanoseconds, 4 * one_way) << name;
        EXPECT_DOUBLE_EQ(run(name, 1024).nanoseconds, 10 * one_way) << name;
        EXPECT_EQ(run(name, 16).messages, 64U) << name;
    }
}

TEST(Simulation, EachRoundOfAHigherRadixTakesTheGapsAsWell) {
    EXPECT_DOUBLE_EQ(run("dissemination_k:4", 64).nanoseconds, 3 * (one_way + 2 * 70));
    EXPECT_DOUBLE_EQ(run("dissemination_k:8", 64).nanoseconds, 2 * (one_way + 6 * 70));
}

TEST(Simulation, LinearTakesTwoGapsForEachOfTheOthers) {
    for (const int members : {2, 3, 100, 5000}) {
        const Outcome outcome = run("linear", members);
        EXPECT_DOUBLE_EQ(outcome.nanoseconds, 2 * one_way + 2.0 * (members - 2) * 70) << members;
        EXPECT_EQ(outcome.messages, 2U * static_cast<unsigned>(members - 1));
    }
}

TEST(Simulation, TreeTakesItsDepthInBothDirections) {
    EXPECT_DOUBLE_EQ(run("tree", 2).nanoseconds, 2 * one_way);
    EXPECT_DOUBLE_EQ(run("tree", 64).nanoseconds, 12 * one_way);
    EXPECT_EQ(run("tree", 64).messages, 126U);
}

TEST(Simulation, DoubleRingTakesTwoRoundsOfMessages) {
    EXPECT_DOUBLE_EQ(run("double_ring", 10).nanoseconds, 20 * one_way);
    EXPECT_EQ(run("double_ring", 10).messages, 20U);
}

TEST(Simulation, ARemotePollTakesARoundTrip) {
    // Seven polls one after another, then the releases, and the word of the last arrival.
    const Outcome outcome = run("central_counter", 8);
    EXPECT_DOUBLE_EQ(outcome.nanoseconds, 7 * 2 * (1000 + 50) + 6 * 70 + 50 + 2 * 1000);
    EXPECT_EQ(outcome.messages, 7U * 2 + 7);
}

TEST(Simulation, HierarchicalSendsOnlyBetweenLeadersOverTheNetwork) {
    const Outcome flat = run("dissemination", 64, 8);
    const Outcome two_levels = run("hierarchical", 64, 8);
    // A tree of 8 up and down, and 8 leaders.
    EXPECT_DOUBLE_EQ(two_levels.nanoseconds, 6 * (100 + 2 * 10) + 3 * one_way);
    EXPECT_LT(two_levels.nanoseconds, flat.nanoseconds);
    EXPECT_EQ(two_levels.network, 8U * 3);
    EXPECT_EQ(two_levels.messages, 8U * 14 + 8 * 3);
}

TEST(Simulation, EveryAlgorithmEndsWithEverySize) {
    const Model shared{.node = {50, 5, 10}, .network = {1000, 50, 70}, .turn = 800, .cores_per_node = 2};
    for (const auto& info : barrier::Algorithms::table)
        for (const int members : {2, 3, 5, 7, 13, 64, 100})
            for (const int per_node : {1, 3, 100}) {
                if (members > info.max_members) continue;
                EXPECT_GT(run(info.name, members, per_node, shared).nanoseconds, 0) << info.name << ' ' << members;
            }
}

TEST(Simulation, IsDeterministic) {
    const Model shared{.node = {50, 5, 10}, .network = {1000, 50, 70}, .turn = 800, .cores_per_node = 2};
    EXPECT_EQ(run("tree", 1000, 64, shared).nanoseconds, run("tree", 1000, 64, shared).nanoseconds);
}

// With many members on a core, each needs at least one turn, and a member that blocks in every round needs many.
TEST(Simulation, SharedCoresReverseTheOrderOfAlgorithms) {
    const Model shared{.node = {50, 5, 10}, .network = {}, .turn = 800, .cores_per_node = 2};
    const Outcome counter = run("shared_counter", 64, 64, shared);
    const Outcome rounds = run("dissemination", 64, 64, shared);
    EXPECT_GE(counter.nanoseconds, 32 * 800);
    EXPECT_GT(rounds.nanoseconds, counter.nanoseconds);
    EXPECT_GT(rounds.turns, counter.turns);
    const Model own{.node = {50, 5, 10}, .network = {}};
    EXPECT_LT(run("dissemination", 64, 64, own).nanoseconds, run("shared_counter", 64, 64, own).nanoseconds);
}

TEST(Simulation, AHundredThousandMembers) {
    EXPECT_DOUBLE_EQ(run("dissemination_k:8", 1 << 15).nanoseconds, 5 * (one_way + 6 * 70));
    EXPECT_DOUBLE_EQ(run("dissemination", 1 << 17).nanoseconds, 17 * one_way);
}

TEST(Simulation, RejectsATeamThatTheAlgorithmCannotServe) {
    auto refused = simulate(plan_of("two_proc"), {3, 1}, far);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::range);
}

}  // namespace
}  // namespace npushmem::simulate
