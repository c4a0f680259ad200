// The host barriers there are. A new one is a file beside this one and an entry in the list.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/coll/barrier/algorithm_list.hpp"
#include "core/coll/barrier/basic.hpp"
#include "core/coll/barrier/bruck.hpp"
#include "core/coll/barrier/central_counter.hpp"
#include "core/coll/barrier/dissemination.hpp"
#include "core/coll/barrier/dissemination_k.hpp"
#include "core/coll/barrier/double_ring.hpp"
#include "core/coll/barrier/hierarchical.hpp"
#include "core/coll/barrier/knomial_tree.hpp"
#include "core/coll/barrier/linear.hpp"
#include "core/coll/barrier/recursive_doubling.hpp"
#include "core/coll/barrier/recursive_doubling_shmem.hpp"
#include "core/coll/barrier/shared_counter.hpp"
#include "core/coll/barrier/tournament.hpp"
#include "core/coll/barrier/tree.hpp"
#include "core/coll/barrier/two_proc.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::barrier {

using Algorithms =
    AlgorithmList<SharedCounter, Tree, Dissemination, Linear, DoubleRing, RecursiveDoubling, Bruck, TwoProc,
                  CentralCounter, Tournament, RecursiveDoublingShmem, Basic, DisseminationK, KnomialTree, Hierarchical>;

inline constexpr AlgorithmId shared_counter_id = Algorithms::id_of<SharedCounter>();
inline constexpr AlgorithmId tree_id = Algorithms::id_of<Tree>();
inline constexpr AlgorithmId dissemination_id = Algorithms::id_of<Dissemination>();
inline constexpr AlgorithmId basic_id = Algorithms::id_of<Basic>();
inline constexpr AlgorithmId recursive_doubling_id = Algorithms::id_of<RecursiveDoubling>();
inline constexpr AlgorithmId hierarchical_id = Algorithms::id_of<Hierarchical>();

// An algorithm with what it takes.
struct Plan {
    AlgorithmId id{};
    int radix = 4;  // where it has one

    bool operator==(const Plan&) const = default;
};

// "dissemination_k:8", "linear".
std::string name_of(const Plan& plan);

// What automatic choices go by. All members of a team must come to the same choice, so give values that they share.
struct BarrierSelectionInput {
    int members = 2;
    double pes_per_core = 1.0;  // the most oversubscribed host of the team
    int nodes = 1;
    bool mapped = true;  // every member can load and store every member's state

    [[nodiscard]] int pes_per_node() const { return (members + nodes - 1) / nodes; }  // at most
};

struct Choice {
    Plan plan;
    std::string why;  // for a person
};

class Tuning;

// What the user asked for: the text of NPUSHMEM_BARRIER_ALGO, "auto", "adaptive" or an algorithm, with ":radix" where
// it has one. Code::config for any other text (the message lists what there is and names the nearest), for a radix out
// of range or where none belongs; Code::range for a team that the algorithm cannot serve.
Result<Choice> choose(std::string_view text, const BarrierSelectionInput& selection_input, const Tuning& tuning);

// One algorithm by its name, as in choose, without "auto" and "adaptive".
Result<Plan> parse_plan(std::string_view text);

// Every algorithm on a line of its own: name (with ":k" where it has a radix), blanks, what it does.
std::string describe_algorithms();

// Can a team of n use it? Code::range otherwise, with the reason.
Status check_members(const Plan& plan, int n);

// What `auto` does where no rule fits.
Choice choose_automatically(const BarrierSelectionInput& selection_input);

}  // namespace npushmem::barrier
