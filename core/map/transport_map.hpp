// SPDX-License-Identifier: BSD-3-Clause
// Maps PEs to transports, with reasons, from the reports of each transport on each peer. Entries are per host, with
// exceptions per PE: the routes need one entry per host and one per PE that differs from its host, and none per pair of
// PEs.
// The reasons, which may name ports of each PE, are kept once per range of PEs, for reports.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/map/host_layout.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// maps[a][b]: the a-th PE of the host maps the b-th one.
using MappingMatrix = std::vector<std::vector<bool>>;

// Divides the PEs of a host into sets whose members all map each other, and returns the set of `me`, in order,
// including `me`. Where mapping is symmetric and transitive, these are the PEs that map each other. Otherwise, for
// example when a link is down, each PE joins the first set whose members it all maps and that all map it.
std::vector<int> sharing_group(int me, const MappingMatrix& maps);

// An open transport with the user's name for it, for instance "fault(p2p)".
struct NamedTransport {
    std::string name;
    Transport* transport;
};

// Returns the estimated time of a put of cost_sample_bytes: the latency of the path plus the bytes over its bandwidth,
// in nanoseconds, by which transports are compared. 0: the transport gives no latency. An unknown bandwidth counts as
// unlimited, so compare latencies if one is unknown.
inline constexpr std::uint64_t cost_sample_bytes = 4096;
double estimated_ns(const Reach& reach);
// "about 2.3 us for 4 KiB".
std::string cost_text(double estimated_ns);

struct Route {
    int transport = -1;  // index into the list of transports
    Reach reach;         // without its reason in the map

    [[nodiscard]] bool maps() const { return reach.has(NPUSHMEM_CAP_MAP); }
};

// Consecutive PEs with the same route and the same reason.
struct RouteRange {
    int first;
    int last;
    Route route;  // with its reason
};

class TransportMap {
public:
    using PeerOf = std::function<npushmem_peer(int transport, int pe)>;

    // Asks the transports in order; the first that reaches a PE serves it. Fails when no transport reaches some PE; the
    // message lists every transport with its reason for the first such PE, and counts the others.
    static Result<TransportMap> build(std::span<const NamedTransport> transports, const HostLayout& layout, int my_pe,
                                      const PeerOf& peer_of);

    [[nodiscard]] const Route& route(int pe) const;

    // Bit i is set when transport i serves some PE.
    [[nodiscard]] std::uint64_t transports_in_use() const { return in_use_; }

    // All PEs in order, with the reasons of their routes.
    [[nodiscard]] std::span<const RouteRange> ranges() const { return ranges_; }
    // Returns the range of an existing PE.
    [[nodiscard]] const RouteRange& range_of(int pe) const;

    // The ranges as text, one line per group of PEs with the same route and reason: "pe 0-7: p2p (same host, shared
    // memory)". The reason ends with the estimated time, if there is one: "..., about 2.3 us for 4 KiB".
    [[nodiscard]] const std::string& describe() const { return text_; }

private:
    TransportMap(const HostLayout& layout, int my_pe)
        : layout_(&layout), my_pe_(my_pe), by_host_(static_cast<std::size_t>(layout.hosts())) {}
    void place(int pe, Route route);

    const HostLayout* layout_;
    int my_pe_;  // always an exception: only this PE reaches itself
    std::vector<Route> by_host_;
    std::map<int, Route> exceptions_;
    std::uint64_t in_use_ = 0;
    std::vector<RouteRange> ranges_;
    std::string text_;
};

}  // namespace npushmem
