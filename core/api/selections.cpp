// SPDX-License-Identifier: BSD-3-Clause
// The selections of the start as versioned C structures.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "core/api/failures.hpp"
#include "core/api/library.hpp"
#include "core/api/teams.hpp"
#include "npushmem/plugin/transport.h"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

static_assert(NPUSHMEMX_ROUTE_MAPPED == NPUSHMEM_CAP_MAP && NPUSHMEMX_ROUTE_PUT == NPUSHMEM_CAP_PUT &&
              NPUSHMEMX_ROUTE_GET == NPUSHMEM_CAP_GET && NPUSHMEMX_ROUTE_ATOMIC == NPUSHMEM_CAP_ATOMIC &&
              NPUSHMEMX_ROUTE_PUT_SIGNAL == NPUSHMEM_CAP_PUT_SIGNAL &&
              NPUSHMEMX_ROUTE_ORDERED == NPUSHMEM_CAP_ORDERED && NPUSHMEMX_ROUTE_REMOTE == NPUSHMEM_CAP_REMOTE &&
              NPUSHMEMX_ROUTE_REPORTS_DEATH == NPUSHMEM_CAP_REPORTS_DEATH &&
              NPUSHMEMX_ROUTE_TARGET_PROGRESS == NPUSHMEM_CAP_TARGET_PROGRESS);

namespace {

// Of a route; the others are of the plugin as a whole.
constexpr std::uint64_t route_capabilities = NPUSHMEMX_ROUTE_MAPPED | NPUSHMEMX_ROUTE_PUT | NPUSHMEMX_ROUTE_GET |
                                             NPUSHMEMX_ROUTE_ATOMIC | NPUSHMEMX_ROUTE_PUT_SIGNAL |
                                             NPUSHMEMX_ROUTE_ORDERED | NPUSHMEMX_ROUTE_REMOTE |
                                             NPUSHMEMX_ROUTE_REPORTS_DEATH | NPUSHMEMX_ROUTE_TARGET_PROGRESS;

// `to` is zero.
template <std::size_t Size>
void copy_text(std::string_view text, char (&to)[Size]) {
    (void)text.copy(to, Size - 1);
}

std::uint32_t copy_nics(std::span<const NicReport> nics, npushmemx_nic_t (&to)[NPUSHMEMX_NICS_MAX]) {
    for (std::size_t i = 0; i < std::min(nics.size(), std::size(to)); ++i) {
        const auto& choice = nics[i].choice;
        copy_text(choice.nic, to[i].name);
        copy_text(nics[i].pci_address, to[i].pci_address);
        copy_text(name_of(choice.distance), to[i].distance);
        to[i].bits_per_second = choice.bits_per_second;
        to[i].port = choice.port;
        to[i].rail = choice.rail_number;
        to[i].sharing_pes = static_cast<std::uint32_t>(choice.shared_with.size());
    }
    return static_cast<std::uint32_t>(nics.size());
}

npushmemx_route_t to_public(const RouteReport& report) {
    npushmemx_route_t out{};
    out.pe = report.pe;
    copy_text(report.transport, out.transport);
    out.capabilities = report.route.reach.capabilities & route_capabilities;
    out.atomic_32 = report.route.reach.atomic_32;
    out.atomic_64 = report.route.reach.atomic_64;
    copy_text(report.route.reach.why, out.reason);
    copy_text(report.host_name, out.host_name);
    out.host = report.host;
    out.same_host = report.same_host ? 1 : 0;
    out.proxied = report.proxied ? 1 : 0;
    out.nic_count = copy_nics(report.own_nics.nics, out.nics);
    out.peer_nics_known = report.peer_nics.is_known ? 1 : 0;
    out.peer_nic_count = copy_nics(report.peer_nics.nics, out.peer_nics);
    return out;
}

npushmemx_bootstrap_t to_public(const JobReport& job) {
    npushmemx_bootstrap_t out{};
    out.rank = job.rank;
    out.nranks = job.pes;
    out.confidence = job.bootstrap.confidence;
    copy_text(job.bootstrap.name, out.name);
    copy_text(job.bootstrap.why, out.reason);
    return out;
}

npushmemx_nics_t to_public(int pe, const PeNics& nics) {
    npushmemx_nics_t out{};
    out.pe = pe;
    out.known = nics.is_known ? 1 : 0;
    out.count = copy_nics(nics.nics, out.nics);
    copy_text(nics.transport, out.transport);
    copy_text(nics.device, out.device);
    copy_text(nics.why, out.reason);
    return out;
}

npushmemx_barrier_choice_t to_public(const barrier::Choice& choice, const barrier::BarrierSelectionInput& input) {
    const auto& info = barrier::Algorithms::info(choice.plan.id);
    npushmemx_barrier_choice_t out{};
    out.radix = info.has_radix ? choice.plan.radix : 0;
    copy_text(info.name, out.algorithm);
    copy_text(choice.why, out.reason);
    out.npes = input.members;
    out.hosts = input.nodes;
    out.mapped = input.mapped ? 1 : 0;
    out.pes_per_core = input.pes_per_core;
    return out;
}

Status check_pe(const Runtime& up, int pe) {
    if (pe >= 0 && pe < up.npes()) return {};
    return {Code::range, fmt::format("PE {} does not exist: the job has the PEs 0 to {}", pe, up.npes() - 1)};
}

// `first` is the size up to the end of the first value behind struct_size; `name` is the parameter's.
template <class Public>
Status check_room(const Public* to, std::size_t first, std::string_view name) {
    if (to == nullptr) return {Code::argument, fmt::format("{} is NULL", name)};
    if (to->struct_size >= first) return {};
    return {Code::argument, fmt::format("{0}->struct_size is {1}, but the first value ends at byte {2}; set it to "
                                        "sizeof(*{0}), {3} bytes, before each call",
                                        name, to->struct_size, first, sizeof(Public))};
}

// Writes as much as the caller has room for.
template <class Public>
void copy_out(Public value, Public* to) {
    value.struct_size = std::min(to->struct_size, static_cast<std::uint32_t>(sizeof value));
    std::memcpy(to, &value, value.struct_size);
}

Status get_route(int pe, npushmemx_route_t* route) {
    Runtime* up = runtime_unnoted();
    if (up == nullptr) return not_running();
    if (Status room = check_room(route, offsetof(npushmemx_route_t, transport), "route"); !room.ok()) return room;
    if (Status exists = check_pe(*up, pe); !exists.ok()) return exists;
    copy_out(to_public(up->reports().route(pe)), route);
    return {};
}

Status get_bootstrap(npushmemx_bootstrap_t* bootstrap) {
    Runtime* up = runtime_unnoted();
    if (up == nullptr) return not_running();
    Status room = check_room(bootstrap, offsetof(npushmemx_bootstrap_t, nranks), "bootstrap");
    if (room.ok()) copy_out(to_public(up->reports().job()), bootstrap);
    return room;
}

Status get_nic_assignment(int pe, npushmemx_nics_t* nics) {
    Runtime* up = runtime_unnoted();
    if (up == nullptr) return not_running();
    if (Status room = check_room(nics, offsetof(npushmemx_nics_t, known), "nics"); !room.ok()) return room;
    if (Status exists = check_pe(*up, pe); !exists.ok()) return exists;
    copy_out(to_public(pe, up->reports().nics_of(pe)), nics);
    return {};
}

Status get_barrier(npushmem_team_t team, npushmemx_barrier_choice_t* choice) {
    const auto found = team_of(team);
    if (!found.ok()) return found.status();
    Status room = check_room(choice, offsetof(npushmemx_barrier_choice_t, algorithm), "choice");
    const TeamBarrier& barrier = found.value()->barrier();
    if (room.ok()) copy_out(to_public(barrier.default_choice(), barrier.selection_input()), choice);
    return room;
}

}  // namespace

extern "C" {

int npushmemx_get_route(int pe, npushmemx_route_t* route) {
    return code_of_call(__func__, [&] { return get_route(pe, route); });
}

int npushmemx_get_bootstrap(npushmemx_bootstrap_t* bootstrap) {
    return code_of_call(__func__, [&] { return get_bootstrap(bootstrap); });
}

int npushmemx_get_nic_assignment(int pe, npushmemx_nics_t* nics) {
    return code_of_call(__func__, [&] { return get_nic_assignment(pe, nics); });
}

int npushmemx_get_barrier(npushmem_team_t team, npushmemx_barrier_choice_t* choice) {
    return code_of_call(__func__, [&] { return get_barrier(team, choice); });
}

}  // extern "C"
