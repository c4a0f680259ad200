// SPDX-License-Identifier: BSD-3-Clause
// Two levels: a tree gathers each node's members at its leader, the leaders run dissemination over the network, and
// the tree releases. The network carries leaders * ceil(log2 leaders) messages, however many members a node has.
//
// Slots: the tree's, then dissemination's, both for teams of n.
#pragma once

#include <string_view>

#include "core/coll/barrier/dissemination.hpp"
#include "core/coll/barrier/schedule.hpp"
#include "core/coll/barrier/tree.hpp"

namespace npushmem::barrier {

// The fabric of some members of a team, with their positions in `members` as indices.
template <class F>
class SubsetFabric {
public:
    SubsetFabric(F& fabric, std::span<const int> members) : fabric_(fabric), members_(members) {}

    Code signal(int member, int slot, std::uint64_t value) { return fabric_.signal(of(member), slot, value); }
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
        return fabric_.add(of(member), slot, value, before);
    }
    Code wait(AwaitedSlot awaited, std::uint64_t value) {
        awaited.member = of(awaited.member);
        if (awaited.from != any_member) awaited.from = of(awaited.from);
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
    static Code run(F& fabric, const BarrierCall& call) {
        if (call.nodes == nullptr) return Tree::run(fabric, call);
        const NodeLayout& nodes = *call.nodes;
        SubsetFabric<F> node(fabric, nodes.node_members);
        const BarrierCall inside{static_cast<int>(nodes.node_members.size()), nodes.index_in_node, call.first_slot,
                                 call.generation};
        Code code = Tree::arrive(node, inside);
        if (code == Code::ok && nodes.index_in_node == 0) code = sync_leaders(fabric, call);
        return code == Code::ok ? Tree::leave(node, inside) : code;
    }

private:
    template <Fabric F>
    static Code sync_leaders(F& fabric, const BarrierCall& call) {
        SubsetFabric<F> leaders(fabric, call.nodes->leaders);
        return Dissemination::run(leaders, {static_cast<int>(call.nodes->leaders.size()), call.nodes->node,
                                            call.first_slot + Tree::slots(call.n), call.generation});
    }
};

}  // namespace npushmem::barrier
