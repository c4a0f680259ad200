// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/method_choice.hpp"

#include <algorithm>

#include "core/coll/host_collectives.hpp"

namespace npushmem::coll {

namespace {

// The limits between the built-in methods, as npushmem-perf tune-collectives has measured them (bench/README.md).
// From this size on, concurrent reads by all members are faster than the root's writes one after the other.
constexpr std::uint64_t pull_broadcast_bytes = 8192;
constexpr std::uint64_t pull_broadcast_bytes_if_unmapped = 32768;
// Where members share cores, the second barrier of a pull is dear: push up to this size, while the root writes less
// than a MiB to all.
constexpr std::uint64_t pull_broadcast_bytes_if_oversubscribed = 128U << 10;
constexpr std::uint64_t pull_broadcast_bytes_to_all = 1U << 20;
// From this many bytes on that all members together would read from the root over transports, each reads only its part
// from the root.
constexpr std::uint64_t scatter_broadcast_bytes_to_all = 1U << 20;
// For prefers_hosts().
constexpr std::uint64_t hosts_messages = 32;
constexpr std::uint64_t hosts_broadcast_bytes = 512U << 10;
constexpr std::uint64_t hosts_fcollect_bytes = 4096;
// A reduction by `hosts` has three more barriers than `published`. They are worth so many reads of other hosts' copies,
// each of which takes a round trip.
constexpr std::uint64_t hosts_reads = 3;
// Members of larger teams publish up to this many bytes rather than write them to all others: a workspace holds those
// of several members, so that each touches fewer pages.
constexpr int push_exchange_members = 8;
constexpr std::uint64_t published_exchange_bytes = Workspace::contribution_bytes / 4;
// From this size on, a second barrier over mapped memory costs less than to combine all arrays on each member.
constexpr std::uint64_t partition_reduce_bytes = 512;

// Returns how many fewer messages a member sends to, or reads from, other hosts by the method `hosts`.
std::uint64_t saved_by_hosts(const Group& group) {
    const HostGrid* const grid = group.host_grid();
    if (grid == nullptr) return 0;
    return static_cast<std::uint64_t>(grid->per_host - 1) * static_cast<std::uint64_t>(grid->hosts - 1);
}

// Without barriers of all, `hosts` takes no more messages than the others. With them it is worth its second barrier if
// it saves a member many messages to other hosts, or `many` bytes.
bool prefers_hosts(const Group& group, std::uint64_t bytes, std::uint64_t many) {
    const std::uint64_t saved = saved_by_hosts(group);
    return (group.host_sync() != nullptr && group.host_grid() != nullptr) || saved >= hosts_messages ||
           saved * bytes >= many;
}

// A call, and what its methods can use.
struct Exchange {
    std::uint32_t collective;
    std::uint64_t bytes;
    bool has_lines;
    bool fits_workspace;
    bool has_hosts;
};

// Returns the selected method; without one, or if it does not serve the call, lines where they do, else the built-in
// method.
Method exchange_method(const Group& group, const Exchange& call, Method built_in) {
    const Method selected = group.method(call.collective, call.bytes);
    const bool serves = selected == Method::hosts       ? call.has_hosts
                        : selected == Method::published ? call.fits_workspace
                                                        : selected != Method::automatic;
    if (serves && selected != Method::lines) return selected;
    return call.has_lines ? Method::lines : built_in;
}

}  // namespace

Method broadcast_method(const Group& group, std::uint64_t bytes, bool has_ring) {
    const Method selected = group.method(NPUSHMEM_COLL_BROADCAST, bytes);
    const bool serves = selected == Method::ring    ? has_ring
                        : selected == Method::hosts ? group.host_grid() != nullptr
                                                    : selected != Method::automatic;
    if (serves) return selected;
    if (has_ring) return Method::ring;
    if (group.size() == 1) return Method::push;
    const auto others = static_cast<std::uint64_t>(group.size() - 1);
    if (group.all_mapped()) {
        const std::uint64_t limit = group.is_oversubscribed()
                                        ? std::clamp(pull_broadcast_bytes_to_all / others, pull_broadcast_bytes,
                                                     pull_broadcast_bytes_if_oversubscribed)
                                        : pull_broadcast_bytes;
        return bytes < limit ? Method::push : Method::pull;
    }
    if (prefers_hosts(group, bytes, hosts_broadcast_bytes)) return Method::hosts;
    if (bytes < pull_broadcast_bytes_if_unmapped) return Method::push;
    return others > 1 && bytes >= scatter_broadcast_bytes_to_all / others ? Method::scatter : Method::pull;
}

bool prefers_published(const Group& group, std::uint64_t bytes) {
    return group.all_mapped() && group.size() > push_exchange_members && bytes <= published_exchange_bytes;
}

Method fcollect_method(const Group& group, std::uint64_t bytes, bool has_lines) {
    const bool fits = bytes <= Workspace::contribution_bytes;
    const Method built_in = prefers_hosts(group, bytes, hosts_fcollect_bytes) ? Method::hosts
                            : prefers_published(group, bytes)                 ? Method::published
                                                                              : Method::push;
    return exchange_method(group, {NPUSHMEM_COLL_FCOLLECT, bytes, has_lines, fits, group.host_grid() != nullptr},
                           built_in);
}

Method alltoall_method(const Group& group, std::uint64_t bytes, bool has_lines) {
    const auto members = static_cast<std::uint64_t>(group.size());
    const bool fits = bytes <= Workspace::contribution_bytes / members;
    const Method built_in = fits && prefers_published(group, bytes * members) ? Method::published : Method::push;
    return exchange_method(group, {NPUSHMEM_COLL_ALLTOALL, bytes, has_lines, fits, false}, built_in);
}

Method reduce_method(const Group& group, std::uint64_t count, const Reduction& how, bool has_lines) {
    const std::uint64_t bytes = count * how.size;
    const bool fits = count <= Workspace::contribution_bytes / how.size;
    const bool is_small = fits && (bytes < partition_reduce_bytes || group.is_oversubscribed() || !group.all_mapped());
    const bool has_hosts = group.host_grid() != nullptr && reduces_by_hosts(how);
    const std::uint64_t saved = saved_by_hosts(group);
    const bool is_worth_barriers =
        saved > 0 && (!fits || saved >= hosts_reads || fits_sums_of_hosts(group, count, how));
    const bool by_hosts = has_hosts && (group.host_sync() != nullptr || is_worth_barriers);
    const Method built_in = by_hosts ? Method::hosts : is_small ? Method::published : Method::partitioned;
    return exchange_method(group, {NPUSHMEM_COLL_REDUCE, bytes, has_lines, fits, has_hosts}, built_in);
}

Method reduce_scatter_method(const Group& group, std::uint64_t bytes, bool has_lines) {
    return exchange_method(group, {NPUSHMEM_COLL_REDUCESCATTER, bytes, has_lines, false, false}, Method::pull);
}

}  // namespace npushmem::coll
