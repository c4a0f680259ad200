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
#include "core/remote/remote_access.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_membership.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

// Chooses the transport for PEs of other hosts when the user leaves it open (NPUSHMEM_REMOTE_TRANSPORT=auto): the first
// of NPUSHMEM_REMOTE_ORDER that every PE of the job can open.

struct RemoteTransportChoice {
    std::optional<OwnedTransport> transport;  // empty: no transport was chosen, for the reason in `explanation`
    std::string explanation;                  // for people
};

// Collective over a job of several hosts. `served` says that this PE's selection already has a transport for other
// hosts. `open` opens a transport by name. No PE gets a transport if the user of any PE made another choice.
Result<RemoteTransportChoice> choose_remote_transport(
    const Settings& settings, bool served, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open);

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
    // Ends the selection: no transport can be added afterwards. Fails if there are too many.
    Status complete_selection();
    // Returns whether a transport pins memory, so that the heap must keep its pages.
    [[nodiscard]] bool pins_memory() const;
    // Holds the claims until the slice is deregistered.
    void hold(NicClaims claims) { nic_claims_ = std::move(claims); }
    // Collective: registers this PE's slice with every transport, and exchanges addresses and handles.
    Status exchange_endpoints(const npushmem_memory& slice);
    // Finds the transport of every PE. Lost peers are reported to `waiting`, which outlives this.
    Status build_map(WaitServices& waiting, Duration timeout);

    [[nodiscard]] std::span<const NamedTransport> named() const { return named_; }
    // The same transports, in the same order.
    [[nodiscard]] std::span<const OwnedTransport> opened() const { return transports_; }
    [[nodiscard]] const TransportMap& map() const { return *map_; }
    // The remote access of the default context and of the library itself.
    [[nodiscard]] RemoteAccess& remote() { return *remote_; }
    // Creates the remote access of other contexts, which must end before this.
    [[nodiscard]] RemotePeers& remote_peers() { return *remote_peers_; }

private:
    Result<EndpointRecord> endpoint_of(const NamedTransport& named, const npushmem_memory& slice);
    [[nodiscard]] npushmem_peer peer_of(int transport, int pe) const;
    [[nodiscard]] std::uint64_t id_of(int transport) const;

    const JobMembership& job_;
    std::vector<OwnedTransport> transports_;
    std::vector<NamedTransport> named_;
    std::vector<std::uint64_t> regions_;  // of the own slice, per transport
    PeerAddressTable peer_addresses_;
    std::unique_ptr<TransportMap> map_;
    std::unique_ptr<RemotePeers> remote_peers_;
    std::unique_ptr<RemoteAccess> remote_;
    NicClaims nic_claims_;  // of the PEs of this host, if this PE made the assignment
};

}  // namespace npushmem
