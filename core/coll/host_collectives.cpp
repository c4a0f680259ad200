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

// Messages between hosts and the waits for them: with signals if the group has a HostSync, otherwise with barriers of
// all. The members make the same calls, and go on after a failure; all functions return the first one.
class Steps {
public:
    explicit Steps(Group& group) : group_(group), sync_(group.host_sync()) {}

    // Call it first in a call whose settle(), that many, are no exchanges.
    Status prepare(std::uint64_t epochs) { return sync_ != nullptr ? sync_->prepare(epochs) : Status{}; }
    // To the member of another host with this one's local index.
    Status send(Status done, int host, std::uint64_t offset, const void* source, std::uint64_t bytes) {
        const int peer = group_.host_grid()->peer_on(host);
        if (sync_ != nullptr) return sync_->send(std::move(done), peer, offset, source, bytes);
        return done.ok() ? write(group_, peer, offset, source, bytes) : done;
    }
    // Waits until the messages of the `senders`, hosts, have arrived, and the members of this host have got here.
    // `exchange`: each member has then waited for all others.
    Status settle(Status done, const std::vector<int>& senders, bool exchange) {
        if (sync_ == nullptr) return complete_and_sync(group_, std::move(done));
        std::vector<int> members;
        for (const int host : senders) members.push_back(group_.host_grid()->peer_on(host));
        return sync_->settle(std::move(done), members, exchange);
    }
    // Waits until all members have entered the call.
    Status meet() {
        const std::vector<int> others = group_.host_grid()->other_hosts();
        Status done;
        for (const int host : others) done = send(std::move(done), host, 0, nullptr, 0);
        return settle(std::move(done), others, true);
    }
    // Waits for the members of this host.
    Status sync_host(Status done) {
        return sync_ != nullptr ? sync_->sync_host(std::move(done)) : sync_after(group_, std::move(done));
    }

private:
    Group& group_;
    HostSync* sync_;
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

// The last member to read from is the one that waits: the others of a host wait only for the holder of the array, and
// the holder for their reads.
template <class Read>
Status read_from_holder(HostSync& sync, Status done, int holder, bool is_holder, Read&& read_array) {
    if (is_holder)
        done = sync.announce(std::move(done));
    else
        done = sync.wait_for(std::move(done), holder);
    sync.next_step();
    if (done.ok()) done = read_array();
    if (is_holder)
        for (const int member : sync.members_on(sync.host())) done = sync.wait_for(std::move(done), member);
    else
        done = sync.announce(std::move(done));
    sync.next_step();
    sync.next_epoch(false);
    return done;
}

// The root sends the array to one member of each other host, which the other members there read from.
Status broadcast_undivided(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                           bool to_root) {
    const HostGrid& grid = *group.host_grid();
    const HostGrid::Position of_root = grid.position_of(root);
    const bool is_root = group.index() == root;
    const bool at_root = grid.own.host == of_root.host;
    const bool is_receiver = !at_root && grid.own.local_index == of_root.local_index;
    const int holder = at_root ? root : grid.local_member(of_root.local_index);
    const auto read_array = [&]() -> Status {
        if (is_receiver || (is_root && !to_root)) return {};
        return read(group, holder, at_root ? source : dest, local_address(group, dest), bytes);
    };
    Steps steps(group);
    Status done = steps.prepare(1);
    if (is_root)
        for (const int host : grid.other_hosts())
            done = steps.send(std::move(done), host, dest, local_address(group, source), bytes);
    if (HostSync* const sync = group.host_sync()) {
        if (is_receiver) done = sync->receive(std::move(done), root);
        return read_from_holder(*sync, std::move(done), holder, is_root || is_receiver, read_array);
    }
    done = steps.settle(std::move(done), is_receiver ? std::vector{of_root.host} : std::vector<int>{}, false);
    if (done.ok()) done = read_array();
    return steps.sync_host(std::move(done));
}

}  // namespace

// No member's dest is written before it has entered the call: it may still use the array of an earlier call. A member
// of the root's host fetches its part first: it needs that anyway. The root sends from its source, as it may have to
// leave dest as it is.
Status broadcast_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root) {
    const HostGrid& grid = *group.host_grid();
    const Receivers receivers{grid, grid.position_of(root).host};
    const bool is_sender = grid.own.host == receivers.root_host;
    const bool is_root = group.index() == root;
    const Chunk part = chunk_of(bytes, grid.per_host, grid.own.local_index);
    const std::byte* const array = local_address(group, is_root ? source : dest);
    const auto send_share = [&](Steps& steps, Status done, int index, int host) {
        const Chunk share = chunk_of(part.count, receivers.count(), index);
        const std::uint64_t at = part.first + share.first;
        return steps.send(std::move(done), host, dest + at, array + at, share.count);
    };
    Steps steps(group);
    Status done = steps.meet();
    if (done.ok() && is_sender && !is_root)
        done = read(group, root, source + part.first, local_address(group, dest + part.first), part.count);
    if (is_sender)
        for (int index = 0; index < receivers.count(); ++index)
            done = send_share(steps, std::move(done), index, receivers.host(index));
    std::vector<int> senders;
    if (!is_sender) senders.push_back(receivers.root_host);
    done = steps.settle(std::move(done), senders, false);
    if (receivers.count() > 1) {  // they exchange their shares
        senders.clear();
        for (int i = 1; i < receivers.count() && !is_sender; ++i) {
            senders.push_back(receivers.host((receivers.own_index() + i) % receivers.count()));
            done = send_share(steps, std::move(done), receivers.own_index(), senders.back());
        }
        done = steps.settle(std::move(done), senders, false);
    }
    if (done.ok() && is_root && to_root) done = read(group, root, source, local_address(group, dest), bytes);
    if (done.ok() && !is_root)
        done = read_other_parts(group, grid, dest, bytes, [&](int local_index) {
            return is_sender ? std::pair(root, source) : std::pair(grid.local_member(local_index), dest);
        });
    return steps.sync_host(std::move(done));
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
    const std::vector<int> others = grid.other_hosts();
    Steps steps(group);
    Status done;
    for (const int host : others) done = steps.send(std::move(done), host, block_of(group.index()), own_block, bytes);
    for (int local_index = 0; local_index < grid.per_host && done.ok(); ++local_index)
        done = write(group, grid.local_member(local_index), block_of(group.index()), own_block, bytes);
    done = steps.settle(std::move(done), others, true);
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
    return steps.sync_host(std::move(done));
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
Status send_host_sum(Group& group, Steps& steps, Status done, std::uint64_t source, std::uint64_t sums,
                     std::uint64_t count, const Reduction& how, CallNumber number) {
    const HostGrid& grid = *group.host_grid();
    alignas(64) Slots slot{};
    if (done.ok())
        done = combine(
            group, grid.per_host,
            [&](int local_index) {
                return Place{grid.local_member(local_index), source};
            },
            count, how, slot.data());
    const std::uint64_t bytes = slot_bytes(count * how.size);
    std::memcpy(slot.data() + bytes - sizeof number, &number, sizeof number);
    const std::uint64_t at = sums + static_cast<std::uint64_t>(grid.own.host) * bytes;
    for (const int host : grid.other_hosts()) done = steps.send(std::move(done), host, at, slot.data(), bytes);
    return done.ok() ? write(group, group.index(), at, slot.data(), bytes) : done;
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

// A leader reads the sources of its host. The sums use the other half of the workspaces in the next call: a leader that
// sends in the call after that has waited for all in the next one, so all have read the sums of this one.
Status reduce_by_host_sums(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                           const Reduction& how) {
    const CallNumber number = group.next_host_sums();
    const std::uint64_t sums = next_half(group);
    Steps steps(group);
    Status done = steps.sync_host({});
    const bool is_sender = group.host_grid()->own.local_index == 0;
    if (is_sender) done = send_host_sum(group, steps, std::move(done), source, sums, count, how, number);
    done = steps.settle(std::move(done), is_sender ? group.host_grid()->other_hosts() : std::vector<int>{}, true);
    return done.ok() ? combine_host_sums(group, sums, dest, count, how, number) : done;
}

// Combines `count` elements at `source` of the members that member_at returns, block by block, into this member's dest.
template <class MemberAt>
Status combine_blocks(Group& group, int members, MemberAt&& member_at, std::uint64_t source, std::uint64_t dest,
                      std::uint64_t count, const Reduction& how) {
    alignas(64) std::array<std::byte, block_bytes> block;
    const std::uint64_t step = block_bytes / how.size;
    Status done;
    for (std::uint64_t i = 0; i < count && done.ok(); i += step) {
        const std::uint64_t elements = std::min(step, count - i);
        done = combine(
            group, members,
            [&](int member) {
                return Place{member_at(member), source + i * how.size};
            },
            elements, how, block.data());
        if (done.ok()) std::memcpy(local_address(group, dest + i * how.size), block.data(), elements * how.size);
    }
    return done;
}

// How the hosts exchange what their members with one local index have combined, the part of each. A member's dest
// outside its part is free until the end; there the messages of the other hosts land.
struct PartExchange {
    enum class Way {
        whole,   // each sends its whole part to all hosts, and combines all
        shares,  // each sends a host its share of the part; that host combines it and sends the result to all
        read     // the same, but each reads its share from all hosts: there is no room to land
    };

    PartExchange(const HostGrid& grid, std::uint64_t count, std::uint64_t element_bytes)
        : hosts(static_cast<std::uint64_t>(grid.hosts)), part(chunk_of(count, grid.per_host, grid.own.local_index)) {
        const auto members = static_cast<std::uint64_t>(grid.per_host);
        const std::uint64_t largest_part = (count + members - 1) / members;
        const std::uint64_t free = count / members * (members / 2);  // of every member, on the larger side of its part
        landing = grid.own.local_index * 2 < grid.per_host ? part.first + part.count : 0;
        const std::uint64_t to_whole = (hosts - 1) * largest_part;
        if (to_whole <= free && (hosts == 2 || to_whole * element_bytes <= whole_bytes))
            way = Way::whole;
        else
            way = (hosts - 1) * (largest_part / hosts + 1) <= free ? Way::shares : Way::read;
    }

    // Returns the elements that a host combines.
    [[nodiscard]] Chunk combined_by(int host) const {
        return way == Way::whole ? Chunk{0, part.count} : chunk_of(part.count, static_cast<int>(hosts), host);
    }
    // Returns the element of dest where the message from one host lands on another.
    [[nodiscard]] std::uint64_t landing_of(int from, int on) const {
        const auto slot = static_cast<std::uint64_t>(from - on - 1) + (from > on ? 0 : hosts);
        return landing + slot * (way == Way::whole ? part.count : part.count / hosts + 1);
    }

    static constexpr std::uint64_t whole_bytes = 32U << 10;

    std::uint64_t hosts;
    Chunk part;
    std::uint64_t landing = 0;
    Way way = Way::read;
};

// Combines what has landed with the own part, in the order of the hosts.
void combine_landed(Group& group, const PartExchange& exchange, std::uint64_t dest, const Reduction& how) {
    const HostGrid& grid = *group.host_grid();
    const Chunk own = exchange.combined_by(grid.own.host);
    alignas(64) std::array<std::byte, block_bytes> block;
    const std::uint64_t step = block_bytes / how.size;
    for (std::uint64_t i = 0; i < own.count; i += step) {
        const std::uint64_t elements = std::min(step, own.count - i);
        for (int host = 0; host < grid.hosts; ++host) {
            const std::uint64_t first =
                host == grid.own.host ? exchange.part.first + own.first : exchange.landing_of(host, grid.own.host);
            const std::byte* const from = local_address(group, dest + (first + i) * how.size);
            if (host == 0)
                how.begin(block.data(), from, elements);
            else
                how.kernel(block.data(), from, elements);
        }
        std::memcpy(local_address(group, dest + (exchange.part.first + own.first + i) * how.size), block.data(),
                    elements * how.size);
    }
}

}  // namespace

// A member accesses only its part of the arrays of its host, and then its share of that part on all hosts. The first
// message of a host's member says that it has combined its part. After those of all hosts, nobody reads the sources of
// another host any more, and dest may be written.
Status reduce_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how) {
    using Way = PartExchange::Way;
    const HostGrid& grid = *group.host_grid();
    const PartExchange exchange(grid, count, how.size);
    const std::vector<int> others = grid.other_hosts();
    const auto at = [&](std::uint64_t element) { return dest + element * how.size; };
    const std::uint64_t part_at = at(exchange.part.first);
    const Chunk share = exchange.combined_by(grid.own.host);
    const std::uint64_t share_at = at(exchange.part.first + share.first);
    Steps steps(group);
    Status done = steps.sync_host({});
    if (done.ok())
        done = combine_blocks(
            group, grid.per_host, [&](int local_index) { return grid.local_member(local_index); },
            source + exchange.part.first * how.size, part_at, exchange.part.count, how);
    for (const int host : others) done = steps.send(std::move(done), host, part_at, nullptr, 0);
    done = steps.settle(std::move(done), others, true);
    if (exchange.way != Way::read) {
        for (const int host : others) {
            const Chunk sent = exchange.combined_by(host);
            done = steps.send(std::move(done), host, at(exchange.landing_of(grid.own.host, host)),
                              local_address(group, at(exchange.part.first + sent.first)), sent.count * how.size);
        }
        done = steps.settle(std::move(done), others, true);
        if (done.ok()) combine_landed(group, exchange, dest, how);
    } else if (done.ok()) {
        done = combine_blocks(
            group, grid.hosts, [&](int host) { return grid.peer_on(host); }, share_at, share_at, share.count, how);
    }
    if (exchange.way == Way::whole) {
        done = steps.sync_host(std::move(done));
    } else {
        for (const int host : others)
            done = steps.send(std::move(done), host, share_at, local_address(group, share_at), share.count * how.size);
        done = steps.settle(std::move(done), others, true);
    }
    for (int local_index = 0; local_index < grid.per_host && done.ok(); ++local_index) {
        const Chunk other = chunk_of(count, grid.per_host, local_index);
        done = read(group, grid.local_member(local_index), at(other.first), local_address(group, at(other.first)),
                    other.count * how.size);
    }
    return steps.sync_host(std::move(done));
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
