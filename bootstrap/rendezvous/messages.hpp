// SPDX-License-Identifier: BSD-3-Clause
// Contents of the frames of the rendezvous.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/deadline.hpp"
#include "core/base/address.hpp"
#include "core/base/bytes.hpp"
#include "core/base/shared_segment.hpp"
#include "core/base/version.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem::rendezvous {

// Formats ranks for a message: "rank 5", "ranks 5, 7, 9-12"; long lists end in "and 40 more". `ranks` is ascending and
// not empty.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

// "0.2.0"
[[nodiscard]] std::string text_of(const Version& version);

// The payloads of join, assign, link and abort. decode() returns none unless the bytes fit exactly.

// Identifies a process, for its peers and in messages.
struct Identity {
    std::int32_t rank = -1;
    std::int32_t pid = 0;
    std::string host;

    static Identity of_this_process(int rank);
    // "rank 3 (pid 123 on host x)"
    [[nodiscard]] std::string text() const;
    // Another rank object may live in the same process; the same rank cannot.
    [[nodiscard]] bool same_process(const Identity& other) const { return pid == other.pid && host == other.host; }

    void encode(ByteWriter& out) const;
    static Identity decode(ByteReader& in);
};

struct Join {
    Identity who;
    std::int32_t nranks = 0;
    Version version{};
    Milliseconds timeout{};   // how long this rank waits for the others
    Address listener;         // address for its children; none for a leaf
    npushmem_host_id host{};  // of a rank that shares memory with other ranks; otherwise zero
    SegmentHandle memory;     // of rank 0, for all ranks if they run on its host

    [[nodiscard]] Buffer encode() const;
    static std::optional<Join> decode(std::span<const std::byte> payload);
};

struct Assign {
    std::uint32_t session = 0;
    Identity parent;  // rank -1 at the root, and where all ranks share memory
    Address parent_listener;
    SegmentHandle memory;  // that all ranks share; process 0: they are connected in a tree

    [[nodiscard]] Buffer encode() const;
    static std::optional<Assign> decode(std::span<const std::byte> payload);
};

struct Link {
    Identity who;

    [[nodiscard]] Buffer encode() const;
    static std::optional<Link> decode(std::span<const std::byte> payload);
};

// Why a job failed: a Status on the wire.
struct Failure {
    Status cause;

    [[nodiscard]] Buffer encode() const;
    static std::optional<Failure> decode(std::span<const std::byte> payload);
};

}  // namespace npushmem::rendezvous
