// SPDX-License-Identifier: BSD-3-Clause
// Limits and settings of the rendezvous.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bootstrap/rendezvous/deadline.hpp"
#include "core/base/address.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous::limits {

// Limits on the memory and time that a peer or an unauthenticated connection can cost.

constexpr std::size_t host_name_bytes = 64;
constexpr std::size_t introduction_bytes = 512;  // join, assign, link
constexpr std::size_t abort_bytes = 2048;        // a cause of at most abort_text_bytes and its code
constexpr std::size_t abort_text_bytes = 1900;   // fits npushmem_error with the prefixes of callers
constexpr std::size_t collective_header_bytes = 24;
constexpr std::size_t chunk_bytes = 64 * 1024;         // pieces in which a collective's data travels
constexpr std::size_t queued_bytes = 4 * chunk_bytes;  // queue of a slow link before its sender waits
constexpr std::size_t inbox_frames = 4;                // frames that are read ahead from a link
constexpr std::int32_t ranks = 1 << 22;

// Connections that have not completed the handshake.
constexpr std::size_t pending_connections = 1024;
constexpr std::chrono::seconds handshake_timeout{10};
// A connecting rank starts over when the other side is silent for this long.
constexpr std::chrono::seconds attempt_timeout{15};
constexpr std::chrono::milliseconds min_backoff{1};
constexpr std::chrono::milliseconds max_backoff{200};
// A rank waits this long beyond its own timeout, so that the side that knows the missing rank can report it.
constexpr std::chrono::seconds cause_report_grace{2};
// In a collective the ranks nearest to the late rank report first: a rank waits this much longer for each level of the
// tree below it, and cause_report_grace longer for the way down.
constexpr std::chrono::milliseconds cause_report_step{100};
// The service keeps a connection this long after it has sent an abort that is not read.
constexpr std::chrono::seconds linger{5};
// abort() tries to send its frames this long.
constexpr std::chrono::milliseconds abort_send_timeout{500};

}  // namespace npushmem::rendezvous::limits

namespace npushmem::rendezvous {

// The plugin's configuration rows, and their values read once.

// The rows of the plugin uid; and the rows of plugins that get their ids from a launcher.
std::span<const npushmem_config_row> config_rows();
std::span<const npushmem_config_row> launched_config_rows();

struct Settings {
    std::string interface_pattern;
    Family family = Family::none;
    Milliseconds timeout{};             // until all ranks have joined and passed the first barrier
    Milliseconds collective_timeout{};  // of each later collective
    std::string session;                // host:port, or empty
    std::string session_secret;
    bool shares_memory = true;  // with the other ranks, if all run on one host
    int emulated_host = -1;

    static Result<Settings> read(const Host& host);
    // For a rank that joins to report its malformed variables: the session settings, and defaults for the others.
    static Settings reporting_defaults(const Host& host);
    // Returns the address that the interface rows choose, with port 0.
    [[nodiscard]] Result<Address> local_address() const;
};

}  // namespace npushmem::rendezvous
