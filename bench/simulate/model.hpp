// SPDX-License-Identifier: BSD-3-Clause
// Cost model of simulated barriers, collectives, MoE layers and starts: LogGP parameters for three kinds of links, and
// cores shared by members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <istream>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem::simulate {

// LogGP (D. Culler and others, "LogP", 1993; A. Alexandrov and others, "LogGP", 1995). Nanoseconds.
struct Link {
    double latency = 0;   // L: from the sender's core to the receiver's memory
    double overhead = 0;  // o: of the core, to send a message or to find an arrived one
    double gap = 0;       // g: minimum time between two messages sent, or received, by one member
    double per_byte = 0;  // G: of long messages, in collectives; the messages of barriers are words

    // Of the sender for a message, and of a waiting reader for a read over `ways` of the link.
    [[nodiscard]] double put_time(std::uint64_t bytes) const {
        return std::max(overhead, gap) + static_cast<double>(bytes) * per_byte;
    }
    [[nodiscard]] double get_time(int ways, std::uint64_t bytes) const {
        return ways * (latency + overhead) + static_cast<double>(bytes) * per_byte;
    }
    bool operator==(const Link&) const = default;
};

struct Model {
    Link node{};             // between members of one node
    Link network{};          // between nodes
    Link tcp{};              // of the bootstrap, between any two members
    double turn = 0;         // nanoseconds from one member to the next on a core that several share
    int cores_per_node = 0;  // 0: one core for each member

    bool operator==(const Model&) const = default;
};

// Defaults: memory of a current server, RDMA over a current fabric, and TCP of the kernel, whose time per byte includes
// the hash that authenticates each frame (0.44 ns with SipHash on one x86 core) and a copy.
Model default_model();

// Lines "<name> <number>", "#" begins a comment; names: node.latency, node.overhead, node.gap, node.per_byte, the
// same of network and of tcp, turn (all nanoseconds), cores_per_node. Unnamed parameters keep their values in `model`.
// Errors have Code::config with line and column.
Status read_model(std::istream& in, const std::string& file, Model& model);
// The same from the file at `path`; "" keeps the model. Code::config as well when it cannot be read.
Status read_model_file(const std::string& path, Model& model);
// Writes the format that read_model reads.
std::string describe(const Model& model);

// Measures this machine: the node's link with two processes that pass a word back and forth, its time per byte with
// memcpy, and the turn with two processes on one core. Code::system if a process cannot be created or bound. Takes a
// fraction of a second.
Result<Model> measure_model(Model defaults);

}  // namespace npushmem::simulate
