// Sizes and times that bound what a peer or an unauthenticated connection can make this code hold or wait for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace npushmem::rendezvous::limits {

constexpr std::size_t host_name_bytes = 64;
constexpr std::size_t introduction_bytes = 512;  // join, assign, link
constexpr std::size_t abort_bytes = 2048;        // a cause of at most abort_text_bytes and its code
constexpr std::size_t abort_text_bytes = 1900;   // fits npushmem_error with what callers put before it
constexpr std::size_t collective_header_bytes = 24;
constexpr std::size_t chunk_bytes = 64 * 1024;         // pieces in which a collective's data travels
constexpr std::size_t queued_bytes = 4 * chunk_bytes;  // what may wait for a slow link before its sender waits too
constexpr std::size_t inbox_frames = 4;                // what is read ahead from a link
constexpr std::int32_t ranks = 1 << 22;

// Pending connections: those that have not proved to know the secret yet.
constexpr std::size_t pending_connections = 1024;
constexpr std::chrono::seconds handshake_timeout{10};
// A connecting rank starts over when the other side is silent for so long.
constexpr std::chrono::seconds attempt_timeout{15};
constexpr std::chrono::milliseconds min_backoff{1};
constexpr std::chrono::milliseconds max_backoff{200};
// How long a rank waits beyond its own time-out for those who know who is missing to say so.
constexpr std::chrono::seconds cause_report_grace{2};
// In a collective, those nearest to the late rank speak first: a rank waits so much longer for each level of the tree
// below it; who waits for the way down waits for cause_report_grace more.
constexpr std::chrono::milliseconds cause_report_step{100};
// How long the service keeps a connection whose last words are not read.
constexpr std::chrono::seconds linger{5};
// How long abort() tries to get its words out.
constexpr std::chrono::milliseconds abort_send_timeout{500};

}  // namespace npushmem::rendezvous::limits
