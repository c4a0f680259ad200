// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/core/coll/barrier/explorer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/coll/barrier/algorithms.hpp"

namespace npushmem::barrier::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Schedules that look right but are wrong. The explorer must find each fault.
namespace faulty {

// Dissemination without parity: the signal of one call can land after that of the next and hide it.
Code one_slot_per_round(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; round < ceil_log2(call.n); ++round) {
        const Code sent = fabric.signal((call.index + (1 << round)) % call.n, round, call.generation);
        if (sent != Code::ok) return sent;
        const Code received = fabric.wait({.member = call.index, .slot = round, .round = round}, call.generation);
        if (received != Code::ok) return received;
    }
    return Code::ok;
}

// Flags of 0 and 1 that the receiver resets.
Code reset_flags(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; round < ceil_log2(call.n); ++round) {
        const Code sent = fabric.signal((call.index + (1 << round)) % call.n, round, 1);
        if (sent != Code::ok) return sent;
        const Code received = fabric.wait_equal(round, 1);
        if (received != Code::ok) return received;
        const Code reset = fabric.store_own(round, 0);
        if (reset != Code::ok) return reset;
    }
    return Code::ok;
}

// Waits for exactly this call's number, which the next call may have replaced.
Code exact_generation(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; round < ceil_log2(call.n); ++round) {
        const Code sent = fabric.signal((call.index + (1 << round)) % call.n, round, call.generation);
        if (sent != Code::ok) return sent;
        const Code received = fabric.wait_equal(round, call.generation);
        if (received != Code::ok) return received;
    }
    return Code::ok;
}

// One round too few.
Code short_dissemination(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; round + 1 < ceil_log2(call.n); ++round) {
        const int slot = 2 * round + static_cast<int>(call.generation % 2);
        const Code sent = fabric.signal((call.index + (1 << round)) % call.n, slot, call.generation);
        if (sent != Code::ok) return sent;
        const Code received = fabric.wait({.member = call.index, .slot = slot}, call.generation);
        if (received != Code::ok) return received;
    }
    return Code::ok;
}

// A binomial tree that releases its children before its own release has arrived.
Code early_release(ReplayFabric& fabric, const BarrierCall& call) {
    if (call.index == 0) {
        const Code received = fabric.wait({.member = 0, .slot = 0}, call.generation);
        return received != Code::ok ? received : fabric.signal(1, 1, call.generation);
    }
    if (call.index == 1) {
        const Code child = fabric.wait({.member = 1, .slot = 0}, call.generation);
        if (child != Code::ok) return child;
        const Code released = fabric.signal(2, 1, call.generation);
        if (released != Code::ok) return released;
        const Code up = fabric.signal(0, 0, call.generation);
        return up != Code::ok ? up : fabric.wait({.member = 1, .slot = 1}, call.generation);
    }
    const Code up = fabric.signal(1, 0, call.generation);
    return up != Code::ok ? up : fabric.wait({.member = 2, .slot = 1}, call.generation);
}

// The original central counter: member 0 lowers the flags that the others raise, without waiting for completion, and
// then takes a flag of the last call for one of the next.
Code lowered_flags(ReplayFabric& fabric, const BarrierCall& call, bool completing) {
    if (call.index != 0) {
        const Code raised = fabric.store_own(0, 1);
        return raised != Code::ok ? raised : fabric.wait_equal(0, 0);
    }
    for (int member = 1; member < call.n; ++member) {
        const Code received = fabric.poll_equal(member, 0, 1);
        if (received != Code::ok) return received;
    }
    for (int member = 1; member < call.n; ++member) {
        const Code lowered = fabric.signal(member, 0, 0);
        if (lowered != Code::ok) return lowered;
    }
    return completing ? fabric.complete() : Code::ok;
}

// Recursive doubling with the parities' slots in one.
Code doubling_without_parity(ReplayFabric& fabric, const BarrierCall& call) {
    return RecursiveDoubling::run(fabric, BarrierCall{call.n, call.index, 0, 2 * call.generation});
}

// Radix 4 with j << round for j * 4^round.
Code shifted_distance(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; (1 << (2 * round)) < call.n; ++round) {
        for (int j = 1; j < 4; ++j) {
            const int slot = round * 3 + j - 1;
            const Code sent = fabric.signal((call.index + (j << round)) % call.n, slot, call.generation);
            if (sent != Code::ok) return sent;
        }
        for (int j = 1; j < 4; ++j) {
            const Code received = fabric.wait({.member = call.index, .slot = round * 3 + j - 1}, call.generation);
            if (received != Code::ok) return received;
        }
    }
    return Code::ok;
}

// A double ring in which member 0 does not receive, as some publications print it.
Code ring_without_receiving(ReplayFabric& fabric, const BarrierCall& call) {
    for (int round = 0; round < 2; ++round) {
        const std::uint64_t token = 2 * call.generation - 1 + static_cast<std::uint64_t>(round);
        if (call.index != 0) {
            const Code received = fabric.wait({.member = call.index, .slot = 0}, token);
            if (received != Code::ok) return received;
        }
        const Code sent = fabric.signal((call.index + 1) % call.n, 0, token);
        if (sent != Code::ok) return sent;
    }
    return Code::ok;
}

// Recursive doubling without the release of folded members: a folded member leaves as soon as it has signalled.
Code fold_without_release(ReplayFabric& fabric, const BarrierCall& call) {
    if (call.index == 2) return fabric.signal(0, 0, call.generation);
    if (call.index == 0) {
        const Code received = fabric.wait({.member = 0, .slot = 0}, call.generation);
        if (received != Code::ok) return received;
    }
    const int slot = 1 + static_cast<int>(call.generation % 2);
    const Code sent = fabric.signal(1 - call.index, slot, call.generation);
    return sent != Code::ok ? sent : fabric.wait({.member = call.index, .slot = slot}, call.generation);
}

// The generation is counted before the last wait: a member that runs again counts twice.
Code constant_generation(ReplayFabric& fabric, const BarrierCall& call) {
    return Dissemination::run(fabric, BarrierCall{call.n, call.index, 0, 1 + call.generation % 2});
}

}  // namespace faulty

Exploration explore(ExplorationConfig config) { return Explorer(std::move(config)).run(); }

struct Case {
    AlgorithmId id;
    Delivery delivery;
    int n;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
    constexpr std::array names{"coherent", "ordered", "unordered"};
    return std::string(Algorithms::info(info.param.id).name) + "_" +
           names[static_cast<std::size_t>(info.param.delivery)] + "_" + std::to_string(info.param.n);
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (std::size_t id = 0; id < Algorithms::count; ++id) {
        for (const auto delivery : {Delivery::coherent, Delivery::ordered, Delivery::unordered}) {
            for (int n = 2; n <= std::min(5, Algorithms::table[id].max_members); ++n)
                cases.push_back({AlgorithmId{id}, delivery, n});
        }
    }
    return cases;
}

// Two nodes: the lower half, rounded up, and the rest.
class TwoNodes {
public:
    explicit TwoNodes(int n) : split_((n + 1) / 2) {
        for (int member = 0; member < n; ++member) (member < split_ ? first_ : second_).push_back(member);
        leaders_ = {0, split_};
        for (int member = 0; member < n; ++member) {
            const bool in_first = member < split_;
            nodes_.push_back(
                {in_first ? first_ : second_, in_first ? member : member - split_, leaders_, in_first ? 0 : 1});
        }
    }
    TwoNodes(const TwoNodes&) = delete;

    [[nodiscard]] const std::vector<NodeLayout>& nodes() const { return nodes_; }

private:
    int split_;
    std::vector<int> first_;
    std::vector<int> second_;
    std::vector<int> leaders_;
    std::vector<NodeLayout> nodes_;
};

class Exhaustive : public ::testing::TestWithParam<Case> {
protected:
    [[nodiscard]] ExplorationConfig config(int calls) const {
        const auto [id, delivery, n] = GetParam();
        ExplorationConfig config{
            .schedule = [id = id](ReplayFabric& fabric,
                                  const BarrierCall& call) { return Algorithms::run(id, fabric, call); },
            .n = n,
            .calls = calls,
            .slots = Algorithms::info(id).slots(n),
            .delivery = delivery};
        if (id == hierarchical_id) config.nodes = two_.nodes();
        return config;
    }

    TwoNodes two_{GetParam().n};
};

// Three calls reuse each slot of either parity once. Five members: the smallest team in which the members of a round
// are neither all nor a power of two.
TEST_P(Exhaustive, BackToBackCallsInEveryInterleaving) {
    const Exploration found = explore(config(3));
    EXPECT_THAT(found.fault, IsEmpty());
    EXPECT_TRUE(found.complete) << "the bound ended the search after " << found.states << " states";
    std::printf("3 calls: %zu states, bound %zu\n", found.states, config(3).bound);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Exhaustive, ::testing::ValuesIn(all_cases()), name_of);

// A radix that does not divide the team, and one that is larger.
TEST(Explorer, EveryRadix) {
    for (const AlgorithmId id : {Algorithms::id_of<DisseminationK>(), Algorithms::id_of<KnomialTree>()}) {
        for (const auto& [n, radix] : {std::pair{4, 3}, std::pair{5, 4}, std::pair{3, 7}}) {
            const Exploration found =
                explore({.schedule = [id](ReplayFabric& f, const BarrierCall& t) { return Algorithms::run(id, f, t); },
                         .n = n,
                         .slots = Algorithms::info(id).slots(n),
                         .delivery = n < 5 ? Delivery::unordered : Delivery::coherent,
                         .radix = radix});
            EXPECT_THAT(found.fault, IsEmpty()) << Algorithms::info(id).name << ", radix " << radix;
            EXPECT_TRUE(found.complete);
        }
    }
}

// The radix may change from call to call: slots then change their writers.
TEST(Explorer, AlternatingRadices) {
    for (const AlgorithmId id : {Algorithms::id_of<DisseminationK>(), Algorithms::id_of<KnomialTree>()}) {
        const auto schedule = [id](ReplayFabric& fabric, BarrierCall call) {
            call.radix = call.generation % 2 == 0 ? 2 : 3;
            return Algorithms::run(id, fabric, call);
        };
        const Exploration found = explore(
            {.schedule = schedule, .n = 4, .slots = Algorithms::info(id).slots(4), .delivery = Delivery::unordered});
        EXPECT_THAT(found.fault, IsEmpty()) << Algorithms::info(id).name;
        EXPECT_TRUE(found.complete);
    }
}

TEST(Explorer, SharedCounterWithReleaseSlotsOnCoherentMemory) {
    for (int n = 2; n <= 4; ++n) {
        const Exploration found =
            explore({.schedule = [](ReplayFabric& f, const BarrierCall& t) { return SharedCounter::run(f, t); },
                     .n = n,
                     .slots = SharedCounter::slots(n),
                     .poll_peers = false});
        EXPECT_THAT(found.fault, IsEmpty());
        EXPECT_TRUE(found.complete);
    }
}

TEST(Explorer, GenerationsWrap) {
    // The last call before the wrap left every slot at 2^64 - 2; only schedules whose slots all hold the generation.
    const std::uint64_t before = ~std::uint64_t{0} - 1;
    const auto wrap = [&](auto schedule, int slots) {
        return explore({.schedule = schedule,
                        .n = 3,
                        .slots = slots,
                        .delivery = Delivery::unordered,
                        .first_generation = before + 1,
                        .initial = before});
    };
    EXPECT_THAT(wrap([](ReplayFabric& f, const BarrierCall& t) { return Tree::run(f, t); }, Tree::slots(3)).fault,
                IsEmpty());
    EXPECT_THAT(
        wrap([](ReplayFabric& f, const BarrierCall& t) { return Dissemination::run(f, t); }, Dissemination::slots(3))
            .fault,
        IsEmpty());
}

TEST(Explorer, TheSharedCounterWraps) {
    // 3 * 2^63 is 2^63 modulo 2^64: after 2^63 calls of three members the counter and the release slots hold the same.
    const std::uint64_t before = std::uint64_t{1} << 63;
    const Exploration found =
        explore({.schedule = [](ReplayFabric& f, const BarrierCall& t) { return SharedCounter::run(f, t); },
                 .n = 3,
                 .slots = SharedCounter::slots(3),
                 .delivery = Delivery::unordered,
                 .first_generation = before + 1,
                 .initial = before});
    EXPECT_THAT(found.fault, IsEmpty());
}

TEST(Explorer, FindsTheLostSignalOfOneSlotPerRound) {
    const ExplorationConfig config{.schedule = faulty::one_slot_per_round, .n = 4, .slots = 2, .monotonic = false};
    ExplorationConfig unordered = config;
    unordered.delivery = Delivery::unordered;
    EXPECT_THAT(explore(config).fault, IsEmpty()) << "harmless while signals keep their order";
    EXPECT_THAT(explore(unordered).fault, HasSubstr("deadlock"));
}

TEST(Explorer, FindsTheDeadlockOfResetFlags) {
    EXPECT_THAT(explore({.schedule = faulty::reset_flags, .n = 4, .slots = 2, .monotonic = false}).fault,
                HasSubstr("deadlock"));
}

TEST(Explorer, FindsTheDeadlockOfExactGenerations) {
    EXPECT_THAT(explore({.schedule = faulty::exact_generation, .n = 4, .slots = 2, .monotonic = false}).fault,
                HasSubstr("deadlock"));
}

TEST(Explorer, FindsTheEarlyLeaverOfAMissingRound) {
    EXPECT_THAT(explore({.schedule = faulty::short_dissemination, .n = 4, .slots = 4}).fault, HasSubstr("too early"));
}

TEST(Explorer, FindsTheEarlyRelease) {
    EXPECT_THAT(explore({.schedule = faulty::early_release, .n = 3, .slots = 2}).fault, HasSubstr("too early"));
}

// The same fault without the search: the reduction itself detects that its assumption is violated.
TEST(Explorer, DetectsADecreasingSlot) {
    EXPECT_THAT(
        explore({.schedule = faulty::one_slot_per_round, .n = 4, .slots = 2, .delivery = Delivery::unordered}).fault,
        HasSubstr("went back"));
}

TEST(Explorer, FindsTheLostSignalOfDoublingWithoutParity) {
    EXPECT_THAT(explore({.schedule = faulty::doubling_without_parity,
                         .n = 4,
                         .slots = RecursiveDoubling::slots(4),
                         .delivery = Delivery::unordered,
                         .monotonic = false})
                    .fault,
                HasSubstr("deadlock"));
}

TEST(Explorer, FindsTheStaleFlagOfACentralCounterThatDoesNotComplete) {
    const auto explore_it = [](Delivery delivery, bool completing) {
        return explore({.schedule =
                            [completing](ReplayFabric& fabric, const BarrierCall& call) {
                                return faulty::lowered_flags(fabric, call, completing);
                            },
                        .n = 3,
                        .slots = 1,
                        .delivery = delivery,
                        .monotonic = false});
    };
    EXPECT_THAT(explore_it(Delivery::coherent, false).fault, IsEmpty()) << "harmless where writes are in place at once";
    EXPECT_THAT(explore_it(Delivery::unordered, false).fault, HasSubstr("too early"));
    EXPECT_THAT(explore_it(Delivery::unordered, true).fault, IsEmpty());
}

TEST(Explorer, FindsTheShiftedDistanceFromElevenMembersOn) {
    // Too many states to visit them all; the fault is near the start.
    const auto fault_of = [](int n) {
        return explore({.schedule = faulty::shifted_distance, .n = n, .calls = 1, .slots = 6, .bound = 200'000}).fault;
    };
    EXPECT_THAT(fault_of(4), IsEmpty());
    EXPECT_THAT(fault_of(11), HasSubstr("too early"));
}

TEST(Explorer, FindsTheRingWhoseFirstMemberDoesNotReceive) {
    EXPECT_THAT(explore({.schedule = faulty::ring_without_receiving, .n = 3, .slots = 1, .monotonic = false}).fault,
                HasSubstr("too early"));
}

TEST(Explorer, FindsTheMissingReleaseOfTheFold) {
    EXPECT_THAT(explore({.schedule = faulty::fold_without_release, .n = 3, .slots = 3}).fault, HasSubstr("too early"));
}

TEST(Explorer, FindsGenerationsThatDoNotGrow) {
    EXPECT_THAT(
        explore({.schedule = faulty::constant_generation, .n = 3, .slots = Dissemination::slots(3), .monotonic = false})
            .fault,
        HasSubstr("too early"));
}

TEST(Explorer, ReportsThatTheBoundEndedTheSearch) {
    ExplorationConfig config{.schedule = faulty::one_slot_per_round, .n = 4, .slots = 2};
    config.bound = 100;
    EXPECT_FALSE(explore(config).complete);
}

}  // namespace
}  // namespace npushmem::barrier::testing
