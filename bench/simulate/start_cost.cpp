// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/start_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "bench/simulate/start_exchanges.hpp"
#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/job_memory.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"

namespace npushmem::simulate {
namespace {

using rendezvous::FrameHeader;
using rendezvous::TreePlace;
using rendezvous::TreeRange;

constexpr double cache_line = 64;

// Time for which a message occupies its sender, or its receiver.
double occupancy(const Link& link, double bytes) { return std::max(link.overhead, link.gap) + bytes * link.per_byte; }

double occupancy_of_frame(const Link& tcp, double payload) {
    return occupancy(tcp, static_cast<double>(FrameHeader::bytes) + payload);
}

// Identifies a PE on a host with a name of usual length.
rendezvous::Identity identity() { return {0, 0, "node-000000"}; }

template <class Message>
double occupancy_of(const Link& tcp, const Message& message) {
    return occupancy_of_frame(tcp, static_cast<double>(message.encode().size()));
}

// `connectors` processes connect to one at the same time. It accepts each, reads its hello and sends a challenge. Each
// answers with a frame of `first`. Returns when the process has read all of these.
double handshake(const Link& tcp, int connectors, double first) {
    const double hello = occupancy_of(tcp, rendezvous::Hello{});
    const double challenge = occupancy_of_frame(tcp, sizeof(rendezvous::Nonce));
    const double accept = occupancy(tcp, 0);
    const double hello_arrives = accept + 2 * tcp.latency + hello + tcp.latency;
    const double last_challenge = hello_arrives + connectors * (accept + hello + challenge);
    const double last_answer = challenge + first + 2 * tcp.latency;
    return last_challenge + std::max((connectors - 1) * first, last_answer) + first;
}

// From the start until the last PE has its assignment.
double join_time(const Link& tcp, int members) {
    rendezvous::Join join;
    join.who = identity();
    rendezvous::Assign assign;
    assign.parent = identity();
    const double assigned = occupancy_of(tcp, assign);
    return handshake(tcp, members, occupancy_of(tcp, join)) + members * assigned + tcp.latency + assigned;
}

// Collectives of `bytes` of each member over the tree (rendezvous::Collectives). Subtrees of one size are alike.
class TreeExchange {
public:
    TreeExchange(const Link& tcp, int members, std::uint64_t bytes) : tcp_(tcp), members_(members), bytes_(bytes) {}

    // From the call of all members until the last returns.
    double time() { return gather(members_).ready + spread(); }
    double messages() { return gather(members_).messages + (members_ - 1) * pieces(members_); }

private:
    struct Gathered {
        double ready = 0;     // when the top of the subtree has the data of all its members
        double messages = 0;  // inside the subtree
    };

    // Of the data of so many members.
    [[nodiscard]] double pieces(int members) const {
        const double bytes = static_cast<double>(bytes_) * members;
        return std::max(1.0, std::ceil(bytes / rendezvous::limits::chunk_bytes));
    }
    [[nodiscard]] double stream(int members) const {
        return pieces(members) * occupancy_of_frame(tcp_, rendezvous::limits::collective_header_bytes) +
               static_cast<double>(bytes_) * members * tcp_.per_byte;
    }

    // Receives from one child after another. A child sends once it has all data of its subtree; its next piece travels
    // while the top receives the one before.
    Gathered gather(int members) {
        if (const auto known = gathered_.find(members); known != gathered_.end()) return known->second;
        Gathered top;
        for (const TreeRange& child : rendezvous::tree_place(0, members).children) {
            const Gathered below = gather(child.size());
            const double sent = stream(child.size());
            const double last_piece = sent / pieces(child.size());
            top.ready = std::max(top.ready + sent, below.ready + sent + tcp_.latency + last_piece);
            top.messages += below.messages + pieces(child.size());
        }
        return gathered_[members] = top;
    }

    // Each rank forwards each piece to its children in order. The slowest rank is below the last child of each level;
    // its subtrees count as those of the first children, which are not smaller.
    [[nodiscard]] double spread() const {
        const auto count = static_cast<std::size_t>(pieces(members_));
        const double piece = stream(members_) / static_cast<double>(count);
        std::vector<double> arrivals(count, 0);
        int members = members_;
        for (bool is_root = true;; is_root = false) {
            const TreePlace top = rendezvous::tree_place(0, members);
            double now = 0;
            for (double& arrival : arrivals) {
                now = std::max(now, arrival) + (is_root ? 0 : piece);
                now += static_cast<double>(top.children.size()) * piece;
                arrival = now + tcp_.latency;
            }
            if (top.children.empty()) return now;
            members = top.children.front().size();
        }
    }

    Link tcp_;
    int members_;
    std::uint64_t bytes_;
    std::map<int, Gathered> gathered_;
};

// By the PE that receives most: its parent's pieces, and those of its subtree.
double received_bytes(int members, std::uint64_t bytes) {
    const TreePlace root = rendezvous::tree_place(0, members);
    return static_cast<double>(bytes) * (members + root.children.front().size() - 1);
}

// Collectives through memory (rendezvous::SharedMemoryBootstrap). In a round all members add to one counter, the last
// one compares the calls of all, one line each, and each copies the parts of all.
double shared_memory_time(const Link& node, int members, std::uint64_t bytes) {
    const std::uint64_t piece = rendezvous::JobMemory::piece_bytes(members);
    const double rounds = std::max(1.0, std::ceil(static_cast<double>(bytes) / static_cast<double>(piece)));
    const double count = members * std::max(node.overhead, node.gap);
    const double compare = members * cache_line * node.per_byte;
    const double notice = node.latency + node.overhead;
    return rounds * (count + compare + notice) + static_cast<double>(bytes) * members * node.per_byte;
}

}  // namespace

Result<StartCost> start_cost(const Team& team, const Model& model) {
    const int members = team.members;
    if (members < 2 || members > rendezvous::limits::ranks || team.per_node < 1)
        return Status{Code::argument, fmt::format("a simulated start has 2 to {} PEs, and at least one on each node, "
                                                  "not {} with {} on each",
                                                  rendezvous::limits::ranks, members, team.per_node)};
    constexpr double frames_of_join = 5;     // hello, challenge, join, assign, leave
    constexpr double frames_of_connect = 3;  // hello, challenge, link
    const bool in_tree = team.nodes() > 1;
    StartCost cost;
    if (in_tree) {  // on one host the PEs attach to memory of the launcher
        cost.join = join_time(model.tcp, members);
        cost.messages = frames_of_join * members;
        const auto children = static_cast<int>(rendezvous::tree_place(0, members).children.size());
        cost.connect = handshake(model.tcp, children, occupancy_of(model.tcp, rendezvous::Link{identity()}));
        cost.messages += frames_of_connect * (members - 1);
    }
    std::vector<StartExchange> exchanges = start_exchanges(StartTraits::typical(in_tree));
    exchanges.insert(exchanges.begin(), {"the bootstrap's opening barrier", 0, false});
    for (const StartExchange& each : exchanges) {
        if (each.is_kept) cost.memory_bytes += static_cast<double>(each.bytes) * members;
        if (!in_tree) {
            cost.exchange += shared_memory_time(model.node, members, each.bytes);
            cost.received_bytes += static_cast<double>(each.bytes) * members;
            continue;
        }
        TreeExchange tree(model.tcp, members, each.bytes);
        cost.exchange += tree.time();
        cost.messages += tree.messages();
        cost.received_bytes += received_bytes(members, each.bytes);
    }
    cost.nanoseconds = cost.join + cost.connect + cost.exchange;
    return cost;
}

}  // namespace npushmem::simulate
