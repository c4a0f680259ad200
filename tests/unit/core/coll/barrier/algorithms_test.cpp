// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/algorithms.hpp"

#include <gmock/gmock.h>

#include <array>
#include <set>

#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/tuning.hpp"

namespace npushmem::barrier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParsePlan, AcceptsEveryNameOfTheList) {
    for (std::size_t i = 0; i < Algorithms::count; ++i) {
        const auto parsed = parse_plan(Algorithms::table[i].name);
        ASSERT_TRUE(parsed.ok()) << Algorithms::table[i].name;
        EXPECT_EQ(parsed.value(), (Plan{AlgorithmId{i}}));
        EXPECT_EQ(parse_plan(name_of(parsed.value())).value(), parsed.value());
    }
}

TEST(ParsePlan, TakesTheRadixWhereThereIsOne) {
    EXPECT_EQ(parse_plan("dissemination_k:8").value().radix, 8);
    EXPECT_EQ(parse_plan(" knomial_tree:32 ").value().radix, 32);
    for (const char* text : {"dissemination_k:1", "dissemination_k:33", "dissemination_k:", "dissemination_k:4x"})
        EXPECT_THAT(parse_plan(text).status().message(), HasSubstr("expected 2 to 32")) << text;
    EXPECT_THAT(parse_plan("linear:4").status().message(), HasSubstr("linear has no radix"));
    EXPECT_EQ(parse_plan("linear:4").status().code(), Code::config);
}

TEST(ParsePlan, NamesTheNearestForAnythingElse) {
    const Status status = parse_plan("disemination").status();
    EXPECT_EQ(status.code(), Code::config);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"disemination\""), HasSubstr("shared_counter, tree"),
                                        HasSubstr("did you mean \"dissemination\"?")));
    EXPECT_THAT(parse_plan("xyzzy").status().message(), Not(HasSubstr("did you mean")));
}

TEST(Choose, AutoSelectsByPesPerCoreAndNodes) {
    for (const char* text : {"auto", "", " auto "})
        EXPECT_EQ(choose(text, {.pes_per_core = 1.0}, Tuning{}).value().plan.id, dissemination_id) << text;
    EXPECT_EQ(choose("auto", {.pes_per_core = 1.5}, Tuning{}).value().plan.id, shared_counter_id);
    EXPECT_EQ(choose("auto", {.members = 8, .pes_per_core = 32, .nodes = 8, .mapped = false}, Tuning{}).value().plan.id,
              dissemination_id);
    const Choice across =
        choose("auto", {.members = 8, .pes_per_core = 4, .nodes = 2, .mapped = false}, Tuning{}).value();
    EXPECT_EQ(across.plan.id, hierarchical_id);
    EXPECT_THAT(across.why, HasSubstr("8 PEs on 2 nodes"));
    EXPECT_THAT(choose("auto", {.pes_per_core = 4}, Tuning{}).value().why, HasSubstr("4 PEs share a core"));
}

TEST(Choose, AdaptiveSelectsByMembersAndNodes) {
    EXPECT_EQ(choose("adaptive", {.members = 1000, .nodes = 1}, Tuning{}).value().plan.id, basic_id);
    EXPECT_EQ(choose("adaptive", {.members = 31, .nodes = 4}, Tuning{}).value().plan.id, basic_id);
    EXPECT_EQ(choose("adaptive", {.members = 32, .nodes = 4}, Tuning{}).value().plan.id, recursive_doubling_id);
}

TEST(Choose, RejectsAnAlgorithmForATooLargeTeam) {
    EXPECT_TRUE(choose("two_proc", {.members = 2}, Tuning{}).ok());
    const Status refused = choose("two_proc", {.members = 3}, Tuning{}).status();
    EXPECT_EQ(refused.code(), Code::range);
    EXPECT_THAT(refused.message(), HasSubstr("two_proc serves teams of at most 2 PEs; this one has 3"));
}

TEST(AlgorithmList, EveryAlgorithmHasSlotsOfItsOwn) {
    for (const int n : {1, 2, 3, 8, 17, 1000}) {
        int next = 0;
        for (std::size_t i = 0; i < Algorithms::count; ++i) {
            EXPECT_EQ(Algorithms::first_slot(AlgorithmId{i}, n), next);
            next += Algorithms::table[i].slots(n);
        }
        EXPECT_EQ(Algorithms::slots(n), next);
        EXPECT_EQ(state_bytes(n), 64U * static_cast<unsigned>(next));
    }
}

TEST(AlgorithmList, AnUnknownNumberIsAnError) {
    struct NoFabric {
        Code signal(int, int, std::uint64_t) { return Code::ok; }
        Code add(int, int, std::uint64_t, std::uint64_t&) { return Code::ok; }
        Code wait(const AwaitedSlot&, std::uint64_t) { return Code::ok; }
        Code complete() { return Code::ok; }
        bool polls_peers() { return true; }
    } fabric;
    EXPECT_EQ(Algorithms::run(AlgorithmId{Algorithms::count}, fabric, BarrierCall{.n = 2}), Code::argument);
}

// Records the operations of one member.
struct Script {
    std::multiset<int> signalled;  // members
    std::multiset<int> waited_for;
    std::set<int> slots;
    std::size_t added = 0;

    Code signal(int member, int slot, std::uint64_t) {
        signalled.insert(member);
        slots.insert(slot);
        return Code::ok;
    }
    Code add(int, int slot, std::uint64_t, std::uint64_t& before) {
        before = 0;
        ++added;
        slots.insert(slot);
        return Code::ok;
    }
    Code wait(const AwaitedSlot& awaited, std::uint64_t) {
        waited_for.insert(awaited.from);
        slots.insert(awaited.slot);
        return Code::ok;
    }
    Code complete() { return Code::ok; }
    [[nodiscard]] bool polls_peers() const { return false; }
};

bool serves(AlgorithmId id, int n) { return n <= Algorithms::info(id).max_members; }

class Schedules : public ::testing::TestWithParam<int> {};

TEST_P(Schedules, StayWithinTheirSlots) {
    const int n = GetParam();
    for (std::size_t id = 0; id < Algorithms::count; ++id) {
        for (int index = 0; index < n && serves(AlgorithmId{id}, n); ++index) {
            Script script;
            for (const std::uint64_t generation : {1, 2}) {
                for (const int radix : {2, 3, 4, 8, 32})
                    EXPECT_EQ(Algorithms::run(AlgorithmId{id}, script, {n, index, 100, generation, radix}), Code::ok);
            }
            for (const int slot : script.slots) {
                EXPECT_GE(slot, 100);
                EXPECT_LT(slot, 100 + Algorithms::table[id].slots(n));
            }
        }
    }
}

TEST_P(Schedules, SignalsAndWaitsMatch) {
    const int n = GetParam();
    for (const AlgorithmId id :
         {tree_id, dissemination_id, Algorithms::id_of<DoubleRing>(), Algorithms::id_of<RecursiveDoubling>(),
          Algorithms::id_of<Tournament>(), Algorithms::id_of<DisseminationK>(), Algorithms::id_of<KnomialTree>()}) {
        std::multiset<std::pair<int, int>> sent;
        std::multiset<std::pair<int, int>> awaited;
        for (int index = 0; index < n; ++index) {
            Script script;
            EXPECT_EQ(Algorithms::run(id, script, {n, index, 0, 1}), Code::ok);
            for (const int to : script.signalled) sent.emplace(index, to);
            for (const int from : script.waited_for) awaited.emplace(from, index);
        }
        EXPECT_EQ(sent, awaited) << Algorithms::info(id).name;
    }
}

TEST_P(Schedules, SendTheMessagesOfTheTextbook) {
    const int n = GetParam();
    const auto messages = [&](AlgorithmId id, int radix) {
        std::size_t sent = 0;
        for (int index = 0; index < n; ++index) {
            Script script;
            EXPECT_EQ(Algorithms::run(id, script, {n, index, 0, 1, radix}), Code::ok);
            sent += script.signalled.size() - script.signalled.count(index) + script.added;
        }
        return static_cast<int>(sent);
    };
    const int power = PowerOfTwoFold::base_size(n);
    EXPECT_EQ(messages(tree_id, 2), 2 * (n - 1));
    EXPECT_EQ(messages(Algorithms::id_of<KnomialTree>(), 5), 2 * (n - 1));
    EXPECT_EQ(messages(Algorithms::id_of<Linear>(), 2), 2 * (n - 1));
    EXPECT_EQ(messages(Algorithms::id_of<Tournament>(), 2), 2 * (n - 1));
    EXPECT_EQ(messages(dissemination_id, 2), n * ceil_log2(n));
    EXPECT_EQ(messages(Algorithms::id_of<Bruck>(), 2), n * ceil_log2(n));
    EXPECT_EQ(messages(Algorithms::id_of<DisseminationK>(), 2), n * ceil_log2(n));
    EXPECT_EQ(messages(recursive_doubling_id, 2), power * ceil_log2(power) + 2 * (n - power));
    if (n > 1) {
        EXPECT_EQ(messages(Algorithms::id_of<DoubleRing>(), 2), 2 * n);
    }
}

TEST(DisseminationK, NeedsTheRoundsOfItsRadix) {
    for (const auto& [n, radix, rounds] : {std::array{8, 8, 1}, std::array{9, 8, 2}, std::array{1'000'000, 8, 7}}) {
        Script script;
        EXPECT_EQ(DisseminationK::run(script, {n, n - 1, 0, 1, radix}), Code::ok);
        EXPECT_LE(static_cast<int>(script.signalled.size()), rounds * (radix - 1));
        EXPECT_GT(static_cast<int>(script.signalled.size()), (rounds - 1) * (radix - 1));
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Schedules, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100));

TEST(Reached, HandlesWrappedGenerations) {
    constexpr std::uint64_t top = ~std::uint64_t{0};
    EXPECT_TRUE(reached(5, 5));
    EXPECT_TRUE(reached(6, 5));
    EXPECT_FALSE(reached(4, 5));
    EXPECT_TRUE(reached(0, top));
    EXPECT_FALSE(reached(top, 0));
}

TEST(WrappedIndex, WrapsWithoutOverflow) {
    constexpr int large = 2147483647;
    EXPECT_EQ(wrapped_index(5, 3, 4), 2);
    EXPECT_EQ(wrapped_index(5, 3, -4), 4);
    EXPECT_EQ(wrapped_index(5, 3, 0), 3);
    EXPECT_EQ(wrapped_index(large, large - 1, large - 1), large - 2);
    EXPECT_EQ(wrapped_index(large, 0, -(large - 1)), 1);
}

TEST(CeilLog2, OfSmallAndLargeNumbers) {
    EXPECT_EQ(ceil_log2(1), 0);
    EXPECT_EQ(ceil_log2(2), 1);
    EXPECT_EQ(ceil_log2(3), 2);
    EXPECT_EQ(ceil_log2(1 << 20), 20);
    EXPECT_EQ(ceil_log2(2147483647), 31);
}

}  // namespace
}  // namespace npushmem::barrier
