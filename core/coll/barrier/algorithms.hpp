// SPDX-License-Identifier: BSD-3-Clause
// The host barriers. To add one, write a header next to this one and add it to the list.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/coll/barrier/dissemination.hpp"
#include "core/coll/barrier/double_ring.hpp"
#include "core/coll/barrier/hierarchical.hpp"
#include "core/coll/barrier/linear.hpp"
#include "core/coll/barrier/recursive_doubling.hpp"
#include "core/coll/barrier/schedule.hpp"
#include "core/coll/barrier/shared_counter.hpp"
#include "core/coll/barrier/tree.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::barrier {

struct AlgorithmInfo {
    std::string_view name;
    std::string_view summary;
    int (*slots)(int n);
    int max_members;
    bool has_radix;
};

template <class Algorithm>
constexpr AlgorithmInfo info_of() {
    AlgorithmInfo info{Algorithm::name, Algorithm::summary, &Algorithm::slots, std::numeric_limits<int>::max(), false};
    if constexpr (requires { Algorithm::max_members; }) info.max_members = Algorithm::max_members;
    if constexpr (requires { Algorithm::has_radix; }) info.has_radix = Algorithm::has_radix;
    return info;
}

// Position in the list; equal in every process of a job.
enum class AlgorithmId : std::size_t {};

template <class... Algorithm>
struct AlgorithmList {
    static constexpr std::size_t count = sizeof...(Algorithm);
    static constexpr std::array<AlgorithmInfo, count> table{{info_of<Algorithm>()...}};

    static constexpr const AlgorithmInfo& info(AlgorithmId id) { return table[static_cast<std::size_t>(id)]; }

    // Returns an algorithm's first slot. Each algorithm has its own slots, so that calls with different algorithms may
    // alternate.
    static constexpr int first_slot(AlgorithmId id, int n) {
        int slot = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(id); ++i) slot += table[i].slots(n);
        return slot;
    }

    static constexpr int slots(int n) { return first_slot(AlgorithmId{count}, n); }

    // Returns the position of `Wanted`, which must be in the list.
    template <class Wanted>
    static constexpr AlgorithmId id_of() {
        std::size_t i = 0;
        (void)((std::is_same_v<Wanted, Algorithm> || (++i, false)) || ...);
        return AlgorithmId{i};
    }

    template <Fabric F>
    static Code run(AlgorithmId id, F& fabric, const BarrierCall& call) {
        std::size_t i = 0;
        Code code = Code::argument;
        (void)((i++ == static_cast<std::size_t>(id) && (code = Algorithm::run(fabric, call), true)) || ...);
        return code;
    }
};

using Algorithms =
    AlgorithmList<SharedCounter, Tree, Dissemination, Linear, DoubleRing, RecursiveDoubling, Bruck, TwoProc,
                  CentralCounter, Tournament, RecursiveDoublingShmem, Basic, DisseminationK, KnomialTree, Hierarchical>;

inline constexpr AlgorithmId shared_counter_id = Algorithms::id_of<SharedCounter>();
inline constexpr AlgorithmId tree_id = Algorithms::id_of<Tree>();
inline constexpr AlgorithmId dissemination_id = Algorithms::id_of<Dissemination>();
inline constexpr AlgorithmId basic_id = Algorithms::id_of<Basic>();
inline constexpr AlgorithmId recursive_doubling_id = Algorithms::id_of<RecursiveDoubling>();
inline constexpr AlgorithmId hierarchical_id = Algorithms::id_of<Hierarchical>();

// An algorithm with its radix.
struct Plan {
    AlgorithmId id{};
    int radix = 4;  // ignored without has_radix

    bool operator==(const Plan&) const = default;
};

// "dissemination_k:8", "linear".
std::string name_of(const Plan& plan);

// The input of automatic choices. All members of a team must make the same choice, so use values that they share.
struct BarrierSelectionInput {
    int members = 2;
    double pes_per_core = 1.0;  // the most oversubscribed host of the team
    int nodes = 1;
    bool mapped = true;  // every member can load and store every member's state

    [[nodiscard]] int pes_per_node() const { return (members + nodes - 1) / nodes; }  // the maximum
};

struct Choice {
    Plan plan;
    std::string why;  // for messages
};

class Tuning;

// Resolves the text of NPUSHMEM_BARRIER_ALGO: "auto", "adaptive" or an algorithm, with ":radix" if it has one. Fails
// with Code::config for any other text (the message lists the algorithms and names the nearest) and for a wrong or
// superfluous radix; with Code::range for a team that the algorithm cannot serve.
Result<Choice> choose(std::string_view text, const BarrierSelectionInput& selection_input, const Tuning& tuning);

// Parses an algorithm's name as in choose, without "auto" and "adaptive".
Result<Plan> parse_plan(std::string_view text);

// Returns a line for every algorithm: name (with ":k" if it has a radix), blanks, summary.
std::string describe_algorithms();

// Checks that a team of n can use it. Fails with Code::range, with the reason.
Status check_members(const Plan& plan, int n);

// The built-in choice of `auto`, when no rule matches.
Choice choose_automatically(const BarrierSelectionInput& selection_input);

}  // namespace npushmem::barrier
