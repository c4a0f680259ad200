// The payloads of join, assign, link and abort as values. decode() gives nothing when the bytes do not fit exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bootstrap/rendezvous/address.hpp"
#include "bootstrap/rendezvous/byte_writer.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "core/base/version.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// Who a process is, for its peers and for messages to people.
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
    Milliseconds timeout{};  // how long this rank waits for the others
    Address listener;        // where its children connect; none for a leaf

    [[nodiscard]] Buffer encode() const;
    static std::optional<Join> decode(std::span<const std::byte> payload);
};

struct Assign {
    std::uint32_t session = 0;
    Identity parent;  // rank -1 at the root
    Address parent_listener;

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
