// SPDX-License-Identifier: BSD-3-Clause
// The links from a PE's NPU to those of its peers.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "npushmem/plugin/transport.hpp"
#include "transports/hccs/engines.hpp"
#include "transports/hccs/links.hpp"
#include "transports/shared/posted_operation.hpp"

namespace npushmem::hccs {

// Decides whether a peer is reachable and whether its memory may be mapped, when a transfer over a link ends, and when
// a link fails. Reports failed links as events.
class PeerLinks {
public:
    PeerLinks(const npushmem_transport_params& params, Settings settings);

    // The NPU that this PE drives, for the peers' reach().
    [[nodiscard]] Bytes address() const;
    // `reach`: through shared memory, which reaches the peer.
    Reach reach(const npushmem_peer& peer, Reach reach);
    // False when every access to the peer's memory uses the engines.
    [[nodiscard]] bool is_mapped(int pe) const;

    // The start of a transfer. The engines' lock is held.
    Engines::Start begin(const PostedOperation& operation, Nanoseconds now);
    Code poll_event(npushmem_event& out);

private:
    static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
    struct Peer {
        Path path;
        std::uint64_t transfers = 0;            // of this PE over the link; guarded by the engines' lock
        std::uint64_t fails_after = unlimited;  // transfers
        bool mapped = true;
    };

    [[nodiscard]] Result<int> npu_of(const npushmem_peer& peer) const;
    [[nodiscard]] std::uint64_t limit_of(const Path& path) const;
    [[nodiscard]] bool has_deferred_failure() const;
    void report_failure(int pe, const Peer& peer, const PostedOperation& operation);

    int my_pe_;
    int npu_;  // the PE's index on its host
    Settings settings_;
    std::vector<Peer> peers_;  // by PE; filled by reach
    LinkClock clock_;          // guarded by the engines' lock
    std::mutex events_lock_;
    std::deque<npushmem_event> events_;
};

}  // namespace npushmem::hccs
