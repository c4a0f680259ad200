// SPDX-License-Identifier: BSD-3-Clause
// The transports of this PE: opened, with this PE's slice registered and the addresses of all PEs exchanged; the map of
// which one serves which PE; and the remote access through them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/wait.hpp"
#include "core/map/transport_map.hpp"
#include "core/remote/local_buffers.hpp"
#include "core/remote/remote_access.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_membership.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

// The choice of the transport for PEs of other hosts when the user leaves it open (NPUSHMEM_REMOTE_TRANSPORT=auto). The
// candidates are those of NPUSHMEM_REMOTE_ORDER that every PE of the job can open. The one whose most expensive path
// between two hosts is the cheapest, by the costs that the transports report (estimated_ns), is chosen. Latencies alone
// are compared if some bandwidth is unknown. If some latency is unknown, the first one that reaches all PEs is chosen.
//
// Opening a transport takes up to 0.2 s of each PE, so further candidates are opened only where the costs can differ:
// no candidate drives NICs by itself, and some host has a network device beside those of TCP, which may serve one
// candidate and not another.

struct RemoteCandidates {
    std::vector<OwnedTransport> transports;  // in NPUSHMEM_REMOTE_ORDER
    // For people: without candidates the reason, otherwise the transports that were not opened, with reasons.
    std::string text;
};

// Collective over a job of several hosts. `served` says that this PE's selection already has a transport for other
// hosts, `fabric` that its host has a network device beside those of TCP. `open` opens a transport by name. There are
// no candidates if the user of any PE made another choice. Fails with Code::config on all PEs if their
// NPUSHMEM_REMOTE_ORDER differ.
Result<RemoteCandidates> open_remote_candidates(
    const Settings& settings, bool served, bool fabric, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open);

// Returns whether this host has a device of InfiniBand's or Slingshot's class, which RoCE, Omni-Path and EFA have too.
bool has_fabric_device(const std::string& device_classes = "/sys/class");

// How kernels operate on PEs that are not mapped: each core by itself, or through a proxy.
struct RemoteModeChoice {
    npu::RemoteMode mode;  // never `configured`
    std::string text;      // for people: the mode and the reason
};

// `ibgda` is NPUSHMEM_IB_ENABLE_IBGDA: auto, 0 or 1. `other_hosts` says that a transport that reaches other hosts
// serves some PE. A proxy that shares a CPU with the waiting core costs scheduler turns.
RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share);

// Start-up calls the functions that return a Status in the order of their declarations.
class JobTransports {
public:
    // `job` outlives this. `opened` is in the order in which the transports are tried.
    JobTransports(const JobMembership& job, std::vector<OwnedTransport> opened)
        : job_(job), transports_(std::move(opened)) {}
    JobTransports(const JobTransports&) = delete;
    JobTransports& operator=(const JobTransports&) = delete;
    // Ends the remote access and deregisters the slice, then closes the transports. All other users of the remote peers
    // have ended before.
    ~JobTransports();

    // Returns whether a transport reaches PEs of other hosts.
    [[nodiscard]] bool serves_other_hosts() const;
    void add(OwnedTransport opened) { transports_.push_back(std::move(opened)); }
    // Adds the candidates for PEs of other hosts, which choose_candidate() reduces to one.
    void add(RemoteCandidates candidates);
    // Ends the selection: no transport can be added afterwards. Fails if there are too many.
    Status complete_selection();
    // Returns whether a transport pins memory, so that the heap must keep its pages.
    [[nodiscard]] bool pins_memory() const;
    // Returns whether a transport drives NICs that are assigned to it.
    [[nodiscard]] bool has_nics() const;
    // Collective, after the NICs are assigned, on which the costs depend: keeps one of the candidates, the same on all
    // PEs, and closes the others. Returns the choice and its reason, for people; "" if there was nothing to choose.
    Result<std::string> choose_candidate();
    // Holds the claims until the slice is deregistered.
    void hold(NicClaims claims) { nic_claims_ = std::move(claims); }
    // Collective: registers this PE's slice with every transport, and exchanges addresses and handles: through `rows`
    // in the memory of the host, if it runs the whole job and has room for them.
    Status exchange_endpoints(const npushmem_memory& slice, std::span<std::byte> rows);
    // The PEs of a host keep one copy of all addresses and handles, in its memory. The host's first PE publishes it,
    // unless it is there already, if there is memory for it; after a further collective all PEs share it.
    Status publish_endpoints(HostMemory& memory);
    void share_endpoints(const HostMemory& memory);
    // Returns whether the PEs of the host read the rows of exchange_endpoints(). Asked by the first of them, which
    // publishes other copies.
    [[nodiscard]] bool reads_endpoints_in(const HostMemory& memory) const;
    // Forgets them instead, for a PE that connects to none.
    void discard_endpoints() { peer_addresses_ = {}; }
    // Keeps a private copy, as the rows of exchange_endpoints() will be discarded.
    void keep_endpoints() { peer_addresses_.gathered().unshare(); }
    // Finds the transport of every PE. Lost peers are reported to `waiting`, which outlives this.
    Status build_map(WaitServices& waiting, Duration timeout);

    // Lets the transports report arrivals. Returns whether all those do that unmapped PEs may use. Called once.
    bool report_arrivals(void (*arrived)(void* context), void* context);

    [[nodiscard]] std::span<const NamedTransport> named() const { return named_; }
    // The same transports, in the same order.
    [[nodiscard]] std::span<const OwnedTransport> opened() const { return transports_; }
    [[nodiscard]] const TransportMap& map() const { return *map_; }
    // The remote access of the default context and of the library itself.
    [[nodiscard]] RemoteAccess& remote() { return *remote_; }
    // Creates the remote access of other contexts, which must end before this.
    [[nodiscard]] RemotePeers& remote_peers() { return *remote_peers_; }
    [[nodiscard]] LocalBuffers& local_buffers() { return *local_buffers_; }

private:
    Result<EndpointRecord> endpoint_of(const NamedTransport& named, const npushmem_memory& slice);
    [[nodiscard]] npushmem_peer peer_of(int transport, int pe) const;
    [[nodiscard]] npushmem_peer peer_at(int pe, std::span<const std::byte> address) const;
    // 0: unknown for some path; infinite: some path does not exist.
    struct PathCost {
        double latency_ns = 0;
        double estimate_ns = 0;  // estimated_ns; unknown without a bandwidth
    };
    // Collective: the maxima over the paths between two hosts.
    Result<PathCost> cost_between_hosts(Transport& transport) const;
    [[nodiscard]] std::uint64_t id_of(int transport) const { return ids_[static_cast<std::size_t>(transport)]; }

    const JobMembership& job_;
    std::vector<OwnedTransport> transports_;
    std::vector<NamedTransport> named_;
    std::size_t candidates_ = 0;          // the last ones of transports_
    std::string candidates_text_;         // RemoteCandidates::text
    JobLiveness* liveness_ = nullptr;     // from build_map on
    std::vector<std::uint64_t> regions_;  // of the own slice, per transport
    std::vector<std::uint64_t> ids_;      // EndpointRecord::transport, per transport
    PeerAddressTable peer_addresses_;
    std::unique_ptr<TransportMap> map_;
    std::unique_ptr<RemotePeers> remote_peers_;
    std::unique_ptr<RemoteAccess> remote_;
    std::unique_ptr<LocalBuffers> local_buffers_;
    NicClaims nic_claims_;  // of the PEs of this host, if this PE made the assignment
};

}  // namespace npushmem
