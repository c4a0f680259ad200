// Two levels: a tree gathers each node's members at its leader, the leaders meet by dissemination over the network, and
// the tree releases. The network carries leaders * ceil(log2 leaders) messages, however many members a node has.
//
// Slots: the tree's, then dissemination's, both for teams of n.
#pragma once

#include <string_view>

#include "core/coll/barrier/dissemination.hpp"
#include "core/coll/barrier/tree.hpp"
#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

// The fabric of some members of a team, numbered by their places in `members`.
template <class F>
class Subset {
public:
    Subset(F& fabric, std::span<const int> members) : fabric_(fabric), members_(members) {}

    Code signal(int member, int slot, std::uint64_t value) { return fabric_.signal(of(member), slot, value); }
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
        return fabric_.add(of(member), slot, value, before);
    }
    Code wait(Awaited awaited, std::uint64_t value) {
        awaited.member = of(awaited.member);
        if (awaited.from != anyone) awaited.from = of(awaited.from);
        return fabric_.wait(awaited, value);
    }
    Code complete() { return fabric_.complete(); }
    [[nodiscard]] bool polls_peers() const { return fabric_.polls_peers(); }

private:
    [[nodiscard]] int of(int member) const { return members_[static_cast<std::size_t>(member)]; }

    F& fabric_;
    std::span<const int> members_;
};

struct Hierarchical {
    static constexpr std::string_view name = "hierarchical";
    static constexpr std::string_view summary = "tree inside each node, dissemination among the nodes' leaders";

    static constexpr int slots(int n) { return Tree::slots(n) + Dissemination::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        if (turn.nodes == nullptr) return Tree::run(fabric, turn);
        const Nodes& nodes = *turn.nodes;
        Subset<F> node(fabric, nodes.mine);
        const Turn inside{static_cast<int>(nodes.mine.size()), nodes.place, turn.first_slot, turn.generation};
        Code code = Tree::arrive(node, inside);
        if (code == Code::ok && nodes.place == 0) code = meet_leaders(fabric, turn);
        return code == Code::ok ? Tree::leave(node, inside) : code;
    }

private:
    template <Fabric F>
    static Code meet_leaders(F& fabric, const Turn& turn) {
        Subset<F> leaders(fabric, turn.nodes->leaders);
        return Dissemination::run(leaders, {static_cast<int>(turn.nodes->leaders.size()), turn.nodes->node,
                                            turn.first_slot + Tree::slots(turn.n), turn.generation});
    }
};

}  // namespace npushmem::barrier
