// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/job_view.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/parse.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

bool selected(const Settings& settings, const std::string& transport) {
    const auto names = split(settings.transports, ',');
    return std::find(names.begin(), names.end(), transport) != names.end();
}

Status check_hosts(int pes, int nodes) {
    if (nodes >= 1 && pes >= nodes) return {};
    return {Code::argument, fmt::format("{} PEs are too few for {} hosts: each host needs at least one", pes, nodes)};
}

RouteLine route_within_host(const JobView& job) {
    if (job.local_transport.empty()) return {{}, "none", "", "same host, but NPUSHMEM_TRANSPORTS does not name p2p"};
    return {{}, job.local_transport, "", "same host, mapped memory"};
}

RouteLine route_between_hosts(const JobView& job, std::size_t peer) {
    const std::string transport = job.remote_transport.empty() ? "none" : job.remote_transport;
    const auto pairs = topology::pair_nics(job.pe(0), job.pe(peer));
    if (pairs.empty()) return {{}, transport, "", "another host, and no NIC"};
    const auto& first = pairs.front();
    return {{},
            transport,
            fmt::format("{} -> {}", name_of(first.mine), name_of(first.theirs)),
            fmt::format("another host, {}", first.why)};
}

RouteLine route_to(const JobView& job, std::size_t peer) {
    if (peer == 0) return {{}, "self", "", "the PE itself"};
    return peer < job.places.size() ? route_within_host(job) : route_between_hosts(job, peer);
}

bool same_route(const RouteLine& a, const RouteLine& b) {
    return a.transport == b.transport && a.nics == b.nics && a.why == b.why;
}

}  // namespace

const topology::PeAssignment& JobView::pe(std::size_t number) const {
    const auto after = std::upper_bound(hosts.begin(), hosts.end(), number,
                                        [](std::size_t pe, const auto& host) { return pe < host.pes.front().pe; });
    const auto& host = *std::prev(after);
    return host.pes[number - host.pes.front().pe];
}

std::size_t JobView::pes() const { return hosts.back().pes.back().pe + std::size_t{1}; }

Result<JobView> view_job(const Settings& settings, int pes, int nodes) {
    if (Status possible = check_hosts(pes, nodes); !possible.ok()) return possible;
    auto machine = topology::machine_of(settings.topo_file);
    if (!machine.ok()) return machine.status();
    JobView job;
    job.machine = std::move(machine).value();
    job.rails = topology::rails_of(job.machine);
    auto rail_numbers = topology::rail_numbers(job.rails, settings.nic_rails);
    if (!rail_numbers.ok()) return rail_numbers.status();
    job.rail_numbers = std::move(rail_numbers).value();
    int first = 0;
    for (int host = 0; host < nodes; ++host) {
        std::vector<int> numbers(static_cast<std::size_t>(pes / nodes + (host < pes % nodes ? 1 : 0)));
        std::iota(numbers.begin(), numbers.end(), first);
        first += static_cast<int>(numbers.size());
        auto choices = preview_nics(settings, job.machine, numbers);
        if (!choices.ok()) return choices.status();
        if (host == 0) job.places = std::move(choices.value().places);
        job.hosts.push_back(std::move(choices.value().assignment));
    }
    if (selected(settings, "p2p") && !settings.disable_p2p) job.local_transport = "p2p";
    const std::string remote = lowercase(settings.remote_transport);
    if (remote == "auto")
        job.remote_transport = "auto: " + settings.remote_order;
    else if (!remote.empty() && remote != "none")
        job.remote_transport = settings.remote_transport;
    return job;
}

std::vector<RouteLine> routes_of(const JobView& job) {
    std::vector<RouteLine> lines;
    for (std::size_t peer = 0; peer < job.pes(); ++peer) {
        RouteLine route = route_to(job, peer);
        auto line =
            std::find_if(lines.begin(), lines.end(), [&](const RouteLine& one) { return same_route(one, route); });
        if (line == lines.end()) line = lines.insert(lines.end(), std::move(route));
        line->pes.push_back(static_cast<std::uint32_t>(peer));
    }
    return lines;
}

std::string describe_map(const JobView& job) {
    std::vector<std::vector<std::string>> rows{{"PE", "transport", "NICs", "why"}};
    for (const auto& line : routes_of(job))
        rows.push_back({topology::pe_ranges(line.pes), line.transport, line.nics, line.why});
    const bool unreachable = job.hosts.size() > 1 && job.remote_transport.empty();
    return fmt::format("Transport map of PE 0 ({} PEs, {} host{}):\n", job.pes(), job.hosts.size(),
                       job.hosts.size() == 1 ? "" : "s") +
           topology::render_table(rows, 2) +
           (unreachable ? "  note: no transport between hosts is selected; choose one with NPUSHMEM_REMOTE_TRANSPORT\n"
                        : "");
}

}  // namespace npushmem::info
