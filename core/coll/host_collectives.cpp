// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/host_collectives.hpp"

#include <array>
#include <bit>
#include <utility>

#include "core/coll/steps.hpp"

namespace npushmem::coll {

namespace {

// Up to this many bytes, one member of a host sends and receives the array: one barrier less, and no shares, which are
// small where there are many hosts.
std::uint64_t undivided_broadcast_bytes(int hosts) {
    return (12U << 10) * (1 + std::bit_width(static_cast<std::uint64_t>(hosts)));
}

// The hosts other than the root's, from its successor on: they divide each part into shares, one for each of them.
struct Receivers {
    const HostGrid& grid;
    int root_host;

    [[nodiscard]] int count() const { return grid.hosts - 1; }
    [[nodiscard]] int host(int index) const { return (root_host + 1 + index) % grid.hosts; }
    [[nodiscard]] int own_index() const { return (grid.own.host - root_host - 1 + grid.hosts) % grid.hosts; }
};

// Reads the parts of the other local members. `holder` returns which member has a part, and in which array.
template <class Holder>
Status read_other_parts(Group& group, const HostGrid& grid, std::uint64_t dest, std::uint64_t bytes, Holder&& holder) {
    return for_each_from(grid.own.local_index, grid.per_host, [&](int local_index) -> Status {
        if (local_index == grid.own.local_index) return {};
        const Chunk part = chunk_of(bytes, grid.per_host, local_index);
        const auto [member, array] = holder(local_index);
        return read(group, member, array + part.first, local_address(group, dest + part.first), part.count);
    });
}

// The hosts exchange their shares of this member's part.
Status exchange_shares(Group& group, const Receivers& receivers, std::uint64_t part_at, std::uint64_t part_bytes) {
    return for_each_from(receivers.own_index(), receivers.count(), [&](int index) -> Status {
        if (index == receivers.own_index()) return {};
        const Chunk share = chunk_of(part_bytes, receivers.count(), index);
        const std::uint64_t at = part_at + share.first;
        return read(group, receivers.grid.peer_on(receivers.host(index)), at, local_address(group, at), share.count);
    });
}

// This member of the root's host sends each other host its share of this member's part.
Status send_part(Group& group, const Receivers& receivers, std::uint64_t dest, const std::byte* source, Chunk part) {
    Status done;
    for (int index = 0; index < receivers.count() && done.ok(); ++index) {
        const Chunk share = chunk_of(part.count, receivers.count(), index);
        done = write(group, receivers.grid.peer_on(receivers.host(index)), dest + part.first + share.first,
                     source + part.first + share.first, share.count);
    }
    return done;
}

Status broadcast_undivided(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                           bool to_root) {
    const HostGrid& grid = *group.host_grid();
    const HostGrid::Position of_root = grid.position_of(root);
    Status done;
    if (group.index() == root) {
        const std::byte* const array = local_address(group, source);
        for (int i = 1; i < grid.hosts && done.ok(); ++i)
            done = write(group, grid.peer_on((grid.own.host + i) % grid.hosts), dest, array, bytes);
        for (int local_index = 0; local_index < grid.per_host && done.ok(); ++local_index)
            if (local_index != grid.own.local_index || to_root)
                done = write(group, grid.local_member(local_index), dest, array, bytes);
    }
    done = complete_and_sync(group, std::move(done));
    if (done.ok() && grid.own.host != of_root.host)
        done = read(group, grid.local_member(of_root.local_index), dest, local_address(group, dest), bytes);
    return sync_after(group, std::move(done));
}

}  // namespace

// A member of the root's host fetches its part first: it needs that anyway. The root sends from its source, as it may
// have to leave dest as it is.
Status broadcast_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root) {
    const HostGrid& grid = *group.host_grid();
    const Receivers receivers{grid, grid.position_of(root).host};
    const bool is_sender = grid.own.host == receivers.root_host;
    const bool is_root = group.index() == root;
    const Chunk part = chunk_of(bytes, grid.per_host, grid.own.local_index);
    Status done = group.sync();
    if (done.ok() && is_sender && !is_root)
        done = read(group, root, source + part.first, local_address(group, dest + part.first), part.count);
    if (done.ok() && is_sender)
        done = send_part(group, receivers, dest, local_address(group, is_root ? source : dest), part);
    done = complete_and_sync(group, std::move(done));
    if (receivers.count() > 1) {
        if (done.ok() && !is_sender) done = exchange_shares(group, receivers, dest + part.first, part.count);
        done = sync_after(group, std::move(done));
    }
    if (done.ok() && is_root && to_root) done = read(group, root, source, local_address(group, dest), bytes);
    if (done.ok() && !is_root)
        done = read_other_parts(group, grid, dest, bytes, [&](int local_index) {
            return is_sender ? std::pair(root, source) : std::pair(grid.local_member(local_index), dest);
        });
    return sync_after(group, std::move(done));
}

Status broadcast_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root) {
    return bytes <= undivided_broadcast_bytes(group.host_grid()->hosts)
               ? broadcast_undivided(group, dest, source, bytes, root, to_root)
               : broadcast_by_parts(group, dest, source, bytes, root, to_root);
}

Status fcollect_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes) {
    const HostGrid& grid = *group.host_grid();
    const auto block_of = [&](int member) { return dest + static_cast<std::uint64_t>(member) * bytes; };
    const std::byte* const own_block = local_address(group, source);
    Status done = for_each_from(grid.own.host, grid.hosts, [&](int host) -> Status {
        if (host == grid.own.host) return {};
        return write(group, grid.peer_on(host), block_of(group.index()), own_block, bytes);
    });
    for (int local_index = 0; local_index < grid.per_host && done.ok(); ++local_index)
        done = write(group, grid.local_member(local_index), block_of(group.index()), own_block, bytes);
    done = complete_and_sync(group, std::move(done));
    if (done.ok())
        done = for_each_from(grid.own.local_index, grid.per_host, [&](int local_index) {
            Status read_all;
            for (int host = 0; host < grid.hosts && read_all.ok(); ++host) {
                const std::uint64_t at = block_of(grid.member(host, local_index));
                if (host != grid.own.host && local_index != grid.own.local_index)
                    read_all = read(group, grid.local_member(local_index), at, local_address(group, at), bytes);
            }
            return read_all;
        });
    return sync_after(group, std::move(done));
}

bool reduces_by_hosts(const Reduction& how) { return !how.widens(); }

namespace {

// The sum of a host in a workspace: the elements, aligned for each type, and at the end of the slot the number of the
// call, so that a sum that has not arrived is noticed.
constexpr std::uint64_t slot_alignment = 16;
using CallNumber = std::uint64_t;

std::uint64_t slot_bytes(std::uint64_t bytes) {
    return (bytes + sizeof(CallNumber) + slot_alignment - 1) / slot_alignment * slot_alignment;
}

using Slots = std::array<std::byte, Workspace::contribution_bytes>;

// The member with local index 0 combines the arrays of its host and sends the sum to its peers.
Status send_host_sum(Group& group, std::uint64_t published, std::uint64_t sums, std::uint64_t count,
                     const Reduction& how, CallNumber number) {
    const HostGrid& grid = *group.host_grid();
    alignas(64) Slots slot{};
    Status done = combine(
        group, grid.per_host, [&](int local_index) { return grid.local_member(local_index); }, published, count, how,
        slot.data());
    const std::uint64_t bytes = slot_bytes(count * how.size);
    std::memcpy(slot.data() + bytes - sizeof number, &number, sizeof number);
    if (!done.ok()) return done;
    const std::uint64_t at = sums + static_cast<std::uint64_t>(grid.own.host) * bytes;
    return for_each_from(grid.own.host, grid.hosts,
                         [&](int host) { return write(group, grid.peer_on(host), at, slot.data(), bytes); });
}

Status combine_host_sums(Group& group, std::uint64_t sums, std::uint64_t dest, std::uint64_t count,
                         const Reduction& how, CallNumber number) {
    const HostGrid& grid = *group.host_grid();
    const std::uint64_t bytes = slot_bytes(count * how.size);
    alignas(64) Slots slots;
    Status done = read(group, grid.local_member(0), sums, slots.data(), bytes * static_cast<std::uint64_t>(grid.hosts));
    std::byte* const result = local_address(group, dest);
    for (int host = 0; host < grid.hosts && done.ok(); ++host) {
        const std::byte* const slot = slots.data() + static_cast<std::uint64_t>(host) * bytes;
        if (std::memcmp(slot + bytes - sizeof number, &number, sizeof number) != 0)
            return {Code::protocol,
                    "the sum of another host has not arrived: a member of the team has failed to send "
                    "it, and reports why"};
        if (host == 0)
            how.begin(result, slot, count);
        else
            how.kernel(result, slot, count);
    }
    return done;
}

Status reduce_by_host_sums(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                           const Reduction& how) {
    const CallNumber number = group.next_host_sums();
    const auto published = publish(group, local_address(group, source), count * how.size);
    const std::uint64_t sums = group.workspace() + group.next_workspace_half() * Workspace::contribution_bytes;
    if (!published.ok()) return published.status();
    const bool is_sender = group.host_grid()->own.local_index == 0;
    Status done;
    if (is_sender) done = send_host_sum(group, published.value(), sums, count, how, number);
    done = is_sender ? complete_and_sync(group, std::move(done)) : group.sync();
    return done.ok() ? combine_host_sums(group, sums, dest, count, how, number) : done;
}

// Combines `count` elements of the members that member_at returns, block by block, and gives each block to `keep`.
template <class MemberAt, class Keep>
Status combine_blocks(Group& group, int members, MemberAt&& member_at, std::uint64_t source, std::uint64_t count,
                      const Reduction& how, Keep&& keep) {
    alignas(64) std::array<std::byte, block_bytes> block;
    const std::uint64_t step = block_bytes / how.size;
    Status done;
    for (std::uint64_t i = 0; i < count && done.ok(); i += step) {
        const std::uint64_t elements = std::min(step, count - i);
        done = combine(group, members, member_at, source + i * how.size, elements, how, block.data());
        if (done.ok()) done = keep(i * how.size, block.data(), elements * how.size);
    }
    return done;
}

}  // namespace

// A member accesses only its part of the arrays of its host, and then its share of that part on all hosts.
Status reduce_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how) {
    const HostGrid& grid = *group.host_grid();
    const Chunk part = chunk_of(count, grid.per_host, grid.own.local_index);
    const Chunk share = chunk_of(part.count, grid.hosts, grid.own.host);
    const std::uint64_t part_at = part.first * how.size;
    const std::uint64_t share_at = dest + part_at + share.first * how.size;
    Status done = group.sync();
    if (done.ok())
        done = combine_blocks(
            group, grid.per_host, [&](int local_index) { return grid.local_member(local_index); }, source + part_at,
            part.count, how,
            [&](std::uint64_t at, const std::byte* block, std::uint64_t bytes) {
                return write(group, group.index(), dest + part_at + at, block, bytes);
            });
    done = sync_after(group, std::move(done));
    if (done.ok())
        done = combine_blocks(
            group, grid.hosts, [&](int host) { return grid.peer_on(host); }, share_at, share.count, how,
            [&](std::uint64_t at, const std::byte* block, std::uint64_t bytes) {
                return for_each_from(grid.own.host, grid.hosts, [&](int host) {
                    return write(group, grid.peer_on(host), share_at + at, block, bytes);
                });
            });
    done = complete_and_sync(group, std::move(done));
    for (int local_index = 0; local_index < grid.per_host && done.ok(); ++local_index) {
        const Chunk other = chunk_of(count, grid.per_host, local_index);
        const std::uint64_t at = dest + other.first * how.size;
        done = read(group, grid.local_member(local_index), at, local_address(group, at), other.count * how.size);
    }
    return sync_after(group, std::move(done));
}

bool fits_sums_of_hosts(const Group& group, std::uint64_t count, const Reduction& how) {
    const auto hosts = static_cast<std::uint64_t>(group.host_grid()->hosts);
    return count <= Workspace::contribution_bytes / how.size &&
           slot_bytes(count * how.size) * hosts <= Workspace::contribution_bytes;
}

Status reduce_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how) {
    return fits_sums_of_hosts(group, count, how) ? reduce_by_host_sums(group, dest, source, count, how)
                                                 : reduce_by_parts(group, dest, source, count, how);
}

}  // namespace npushmem::coll
