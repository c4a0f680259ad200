// What a simulated barrier costs: LogGP's parameters for two kinds of links, and how nodes share their cores.
#pragma once

#include <istream>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem::simulate {

// LogGP for messages of one word (D. Culler and others, "LogP", 1993; A. Alexandrov and others, "LogGP", 1995): the
// time of the long message's bytes does not occur. Nanoseconds.
struct Link {
    double latency = 0;   // L: from the sender's core to the receiver's memory
    double overhead = 0;  // o: of the core, to send one and to find one that has come
    double gap = 0;       // g: least time between two messages that one member sends, or that one receives

    bool operator==(const Link&) const = default;
};

struct Model {
    Link node;               // between members of one node
    Link network;            // between nodes
    double turn = 0;         // nanoseconds from one member to the next on a core that several share
    int cores_per_node = 0;  // 0: one for each member

    bool operator==(const Model&) const = default;
};

// Memory of a server of today, and RDMA over a fabric of today; used where nothing was measured or given.
Model default_model();

// Lines "<name> <number>", "#" begins a comment; names: node.latency, node.overhead, node.gap, network.latency,
// network.overhead, network.gap, turn (nanoseconds), cores_per_node. What is not named keeps its value in `model`.
// Code::config with the line and column of what is wrong.
Status read_model(std::istream& in, const std::string& file, Model& model);
// As read_model reads it.
std::string describe(const Model& model);

// This machine's: the node's link from two processes that hand a word to and fro, and the turn from two on one core.
// Code::system when a process cannot be made or bound. Takes a fraction of a second.
Result<Model> measure_model(Model defaults);

}  // namespace npushmem::simulate
