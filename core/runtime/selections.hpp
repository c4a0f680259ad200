// SPDX-License-Identifier: BSD-3-Clause
// What start-up selected and why, as values: the texts for people, the report as JSON and the C API are all written
// from these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/coll/barrier/algorithms.hpp"
#include "core/map/host_layout.hpp"
#include "core/map/transport_map.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// The selections that concern the whole job.
struct JobReport {
    int rank = 0;
    int pes = 1;
    Distribution distribution = Distribution::block;
    bool even = true;                     // all hosts have the same number of PEs
    std::vector<std::string> host_names;  // by number of the host; emulated hosts of one machine share a name
    std::uint64_t heap_bytes = 0;         // of each PE
    std::string standard;                 // the standard variables that are set, one line each
    std::string static_data;
    BootstrapSelection bootstrap;
    std::string between_hosts;                // the choice for PEs of other hosts; empty: no choice was needed
    std::optional<RemoteModeChoice> kernels;  // for PEs that are not mapped; empty: all are
    std::string collectives;                  // the choice of COLL_LIBRARY with its reason; empty: none was set
    barrier::Choice barrier;
    barrier::BarrierSelectionInput barrier_input;
    std::string waiting;
};

// "uid (there is a unique id)".
std::string describe(const BootstrapSelection& selection);
// Several lines, each with a newline.
std::string describe(const JobReport& job);

// One NIC port of a PE.
struct NicReport {
    topology::NicChoice choice;
    std::string pci_address;  // empty: unknown
};

struct PeNics {
    bool is_known = false;  // a PE knows the NICs of its own host
    std::string transport;  // that drives them; empty: none
    std::string device;     // the place of the PE's device, as a clause
    std::string why;        // of the NICs, or why none is known
    std::vector<NicReport> nics;
};

// A PE and the one that asks about its NICs.
struct NicSubject {
    int my_pe;
    bool other_host;        // the PE runs on another host than my_pe
    std::string host_name;  // of the PE
};
PeNics nics_of(const HostNics& host, int pe, const NicSubject& subject);

// The route of this PE to one PE.
struct RouteReport {
    int pe = -1;
    std::string transport;
    Route route;  // with its reason
    std::string host_name;
    int host = 0;
    bool same_host = false;
    bool proxied = false;  // kernels pass their operations to a proxy thread
    PeNics own_nics;       // that the route's transport uses
    PeNics peer_nics;
};

struct TransportReport {
    std::string name;  // with its decorators: "fault(p2p)"
    std::string why;
    bool remote = false;  // reaches PEs of other hosts
    bool in_use = false;  // serves some PE
};

// The assignment that a transport with NICs would get.
struct NicPreview {
    topology::Assignment assignment;
    Status failure;  // of the preview
};

// All that the report of PE 0 at start has.
struct StartReport {
    const JobReport& job;
    std::span<const TransportReport> transports;
    std::span<const RouteRange> routes;  // transports by index
    const HostNics& nics;
    const NicPreview* preview;  // null if this PE's transports drive NICs
    const Config& config;
};

// One JSON object on one line, without a newline; include/README.md describes its members. Bytes that are no UTF-8 are
// replaced. Variables that grant access to the job are listed without their values.
std::string to_json(const StartReport& report);

}  // namespace npushmem
