// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/host_collectives.hpp"

#include <array>
#include <utility>

#include "core/coll/steps.hpp"

namespace npushmem::coll {

namespace {

// Up to this many bytes, one member of a host sends and receives the array: one barrier less.
constexpr std::uint64_t undivided_broadcast_bytes = 32U << 10;

// The hosts other than the root's, in the order from its successor on, share a part: host `index` of these.
struct Receivers {
    const HostGrid& grid;
    int root_host;

    [[nodiscard]] int count() const { return grid.hosts - 1; }
    [[nodiscard]] int host(int index) const { return (root_host + 1 + index) % grid.hosts; }
    [[nodiscard]] int own_index() const { return (grid.own_host - root_host - 1 + grid.hosts) % grid.hosts; }
};

// Reads the parts of the other members of this host: what they have received, or what the root of this host has.
template <class Holder>
Status read_other_parts(Group& group, const HostGrid& grid, std::uint64_t dest, std::uint64_t bytes, Holder&& holder) {
    return for_each_from(grid.own_place, grid.per_host, [&](int place) -> Status {
        if (place == grid.own_place) return {};
        const Chunk part = chunk_of(bytes, grid.per_host, place);
        const auto [member, array] = holder(place);
        return read(group, member, array + part.first, local_address(group, dest + part.first), part.count);
    });
}

// The hosts exchange their shares of this member's part.
Status exchange_shares(Group& group, const Receivers& receivers, std::uint64_t part_at, std::uint64_t part_bytes) {
    return for_each_from(receivers.own_index(), receivers.count(), [&](int index) -> Status {
        if (index == receivers.own_index()) return {};
        const Chunk share = chunk_of(part_bytes, receivers.count(), index);
        const std::uint64_t at = part_at + share.first;
        return read(group, receivers.grid.counterpart(receivers.host(index)), at, local_address(group, at),
                    share.count);
    });
}

// This member of the root's host sends each other host its share of this member's part.
Status send_part(Group& group, const Receivers& receivers, std::uint64_t dest, const std::byte* source, Chunk part) {
    Status done;
    for (int index = 0; index < receivers.count() && done.ok(); ++index) {
        const Chunk share = chunk_of(part.count, receivers.count(), index);
        done = write(group, receivers.grid.counterpart(receivers.host(index)), dest + part.first + share.first,
                     source + part.first + share.first, share.count);
    }
    return done;
}

Status broadcast_undivided(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                           bool to_root) {
    const HostGrid& grid = *group.host_grid();
    Status done;
    if (group.index() == root) {
        const std::byte* const array = local_address(group, source);
        for (int i = 1; i < grid.hosts && done.ok(); ++i)
            done = write(group, grid.counterpart((grid.own_host + i) % grid.hosts), dest, array, bytes);
        for (int place = 0; place < grid.per_host && done.ok(); ++place)
            if (place != grid.own_place || to_root) done = write(group, grid.beside(place), dest, array, bytes);
    }
    if (done.ok()) done = complete_and_sync(group);
    const Position of_root = grid.position_of(root);
    if (done.ok() && grid.own_host != of_root.host)
        done = read(group, grid.beside(of_root.place), dest, local_address(group, dest), bytes);
    return done.ok() ? group.sync() : done;
}

}  // namespace

// A member of the root's host fetches its part first: it needs that anyway. The root sends from its source, as it may
// have to leave dest as it is.
Status broadcast_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root) {
    const HostGrid& grid = *group.host_grid();
    const Receivers receivers{grid, grid.position_of(root).host};
    const bool sends = grid.own_host == receivers.root_host;
    const bool is_root = group.index() == root;
    const Chunk part = chunk_of(bytes, grid.per_host, grid.own_place);
    Status done = group.sync();
    if (done.ok() && sends && !is_root)
        done = read(group, root, source + part.first, local_address(group, dest + part.first), part.count);
    if (done.ok() && sends)
        done = send_part(group, receivers, dest, local_address(group, is_root ? source : dest), part);
    if (done.ok()) done = complete_and_sync(group);
    if (done.ok() && receivers.count() > 1) {
        if (!sends) done = exchange_shares(group, receivers, dest + part.first, part.count);
        if (done.ok()) done = group.sync();
    }
    if (done.ok() && is_root && to_root) done = read(group, root, source, local_address(group, dest), bytes);
    if (done.ok() && !is_root)
        done = read_other_parts(group, grid, dest, bytes, [&](int place) {
            return sends ? std::pair(root, source) : std::pair(grid.beside(place), dest);
        });
    return done.ok() ? group.sync() : done;
}

Status broadcast_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root) {
    return bytes <= undivided_broadcast_bytes ? broadcast_undivided(group, dest, source, bytes, root, to_root)
                                              : broadcast_by_parts(group, dest, source, bytes, root, to_root);
}

Status fcollect_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes) {
    const HostGrid& grid = *group.host_grid();
    const auto block_of = [&](int member) { return dest + static_cast<std::uint64_t>(member) * bytes; };
    const std::byte* const mine = local_address(group, source);
    Status done = for_each_from(grid.own_host, grid.hosts, [&](int host) -> Status {
        if (host == grid.own_host) return {};
        return write(group, grid.counterpart(host), block_of(group.index()), mine, bytes);
    });
    for (int place = 0; place < grid.per_host && done.ok(); ++place)
        done = write(group, grid.beside(place), block_of(group.index()), mine, bytes);
    if (done.ok()) done = complete_and_sync(group);
    if (done.ok())
        done = for_each_from(grid.own_place, grid.per_host, [&](int place) {
            Status read_all;
            for (int host = 0; host < grid.hosts && read_all.ok(); ++host) {
                const std::uint64_t at = block_of(grid.member(host, place));
                if (host != grid.own_host && place != grid.own_place)
                    read_all = read(group, grid.beside(place), at, local_address(group, at), bytes);
            }
            return read_all;
        });
    return done.ok() ? group.sync() : done;
}

bool reduces_by_hosts(const Reduction& how) { return !how.widens(); }

namespace {

// The member at place 0 combines its host's arrays and sends the sum to its counterparts.
Status reduce_by_host_sums(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                           const Reduction& how) {
    const HostGrid& grid = *group.host_grid();
    const std::uint64_t bytes = count * how.size;
    const auto published = publish(group, local_address(group, source), bytes);
    if (!published.ok()) return published.status();
    const std::uint64_t sums = group.workspace() + group.next_workspace_half() * Workspace::contribution_bytes;
    Status done;
    if (grid.own_place == 0) {
        alignas(64) std::array<std::byte, Workspace::contribution_bytes> sum;
        done = combine(
            group, grid.per_host, [&](int place) { return grid.beside(place); }, published.value(), count, how,
            sum.data());
        const std::uint64_t at = sums + static_cast<std::uint64_t>(grid.own_host) * bytes;
        if (done.ok())
            done = for_each_from(grid.own_host, grid.hosts,
                                 [&](int host) { return write(group, grid.counterpart(host), at, sum.data(), bytes); });
    }
    if (done.ok()) done = complete_and_sync(group);
    if (!done.ok()) return done;
    alignas(64) std::array<std::byte, Workspace::contribution_bytes> all;
    done = read(group, grid.beside(0), sums, all.data(), bytes * static_cast<std::uint64_t>(grid.hosts));
    if (!done.ok()) return done;
    std::byte* const result = local_address(group, dest);
    const std::byte* operand = all.data();
    how.begin(result, operand, count);
    for (int host = 1; host < grid.hosts; ++host) how.kernel(result, operand += bytes, count);
    return {};
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
    const Chunk part = chunk_of(count, grid.per_host, grid.own_place);
    const Chunk share = chunk_of(part.count, grid.hosts, grid.own_host);
    const std::uint64_t part_at = part.first * how.size;
    const std::uint64_t share_at = dest + part_at + share.first * how.size;
    Status done = group.sync();
    if (done.ok())
        done = combine_blocks(
            group, grid.per_host, [&](int place) { return grid.beside(place); }, source + part_at, part.count, how,
            [&](std::uint64_t at, const std::byte* block, std::uint64_t bytes) {
                return write(group, group.index(), dest + part_at + at, block, bytes);
            });
    if (done.ok()) done = group.sync();
    if (done.ok())
        done = combine_blocks(
            group, grid.hosts, [&](int host) { return grid.counterpart(host); }, share_at, share.count, how,
            [&](std::uint64_t at, const std::byte* block, std::uint64_t bytes) {
                return for_each_from(grid.own_host, grid.hosts, [&](int host) {
                    return write(group, grid.counterpart(host), share_at + at, block, bytes);
                });
            });
    if (done.ok()) done = complete_and_sync(group);
    if (!done.ok()) return done;
    for (int place = 0; place < grid.per_host && done.ok(); ++place) {
        const Chunk other = chunk_of(count, grid.per_host, place);
        const std::uint64_t at = dest + other.first * how.size;
        done = read(group, grid.beside(place), at, local_address(group, at), other.count * how.size);
    }
    return done.ok() ? group.sync() : done;
}

bool fits_sums_of_hosts(const Group& group, std::uint64_t count, const Reduction& how) {
    const auto hosts = static_cast<std::uint64_t>(group.host_grid()->hosts);
    return count <= Workspace::contribution_bytes / how.size / hosts;
}

Status reduce_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how) {
    return fits_sums_of_hosts(group, count, how) ? reduce_by_host_sums(group, dest, source, count, how)
                                                 : reduce_by_parts(group, dest, source, count, how);
}

}  // namespace npushmem::coll
