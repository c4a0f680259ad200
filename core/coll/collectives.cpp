// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/collectives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/coll/collectives_library.hpp"
#include "core/coll/host_collectives.hpp"
#include "core/coll/method_choice.hpp"
#include "core/coll/steps.hpp"

namespace npushmem::coll {

namespace {

// Bytes for one member.
struct Message {
    std::uint64_t dest;
    const std::byte* source;
    std::uint64_t bytes;
};

// Writes the message of `message_for(member)` to every member, this one included, and waits for those of all others.
// After a failure, `done`, reports that to them instead. Returns the first failure.
template <class MessageFor>
Status push_to_all(Group& group, Status done, MessageFor&& message_for) {
    const auto write_to = [&](int member) {
        const Message message = message_for(member);
        return write(group, member, message.dest, message.source, message.bytes);
    };
    HostSync* const sync = group.host_sync();
    if (sync == nullptr || !sync->has_pairs()) {
        if (done.ok()) done = for_all(group, write_to);
        return complete_and_sync(group, std::move(done));
    }
    if (done.ok()) done = sync->broken();
    std::vector<int> senders;
    for (int i = 1; i <= group.size(); ++i) {
        const int member = (group.index() + i) % group.size();
        if (sync->is_on_host(member)) {
            if (done.ok()) done = write_to(member);
            continue;
        }
        const Message message = done.ok() ? message_for(member) : Message{};
        done = sync->send(std::move(done), member, message.dest, message.source, message.bytes);
        senders.push_back(member);
    }
    return sync->settle(std::move(done), senders, true);
}

Status broadcast_push(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                      bool to_root) {
    Status done;
    if (group.index() == root)
        done = for_all(group, [&](int member) {
            return member != root || to_root ? write(group, member, dest, local_address(group, source), bytes)
                                             : Status{};
        });
    return complete_and_sync(group, std::move(done));
}

Status broadcast_pull(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                      bool to_root) {
    if (Status synced = group.sync(); !synced.ok()) return synced;
    Status done;
    if (group.index() != root || to_root) done = read(group, root, source, local_address(group, dest), bytes);
    return sync_after(group, std::move(done));
}

// The root's link carries the array once, not once per member.
Status broadcast_scatter_allgather(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes,
                                   int root, bool to_root) {
    if (Status synced = group.sync(); !synced.ok()) return synced;
    const bool is_root = group.index() == root;
    const Chunk mine = chunk_of(bytes, group.size(), group.index());
    Status done;
    if (!is_root) done = read(group, root, source + mine.first, local_address(group, dest + mine.first), mine.count);
    if (is_root && to_root) done = read(group, root, source, local_address(group, dest), bytes);
    done = sync_after(group, std::move(done));
    if (done.ok() && !is_root)
        done = for_all(group, [&](int member) {
            const Chunk chunk = chunk_of(bytes, group.size(), member);
            const std::uint64_t from = member == root ? source : dest;
            return read(group, member, from + chunk.first, local_address(group, dest + chunk.first), chunk.count);
        });
    return sync_after(group, std::move(done));
}

// Synchronises, lets each member read from every other one, and synchronises again.
template <class Read>
Status pull_from_all(Group& group, Read&& read_from) {
    Status done = group.sync();
    if (done.ok()) done = for_all(group, read_from);
    return sync_after(group, std::move(done));
}

// Combines the arrays of all members.
Status combine_all(Group& group, std::uint64_t source, std::size_t count, const Reduction& how, std::byte* result) {
    return combine(
        group, group.size(),
        [source](int member) {
            return Place{member, source};
        },
        count, how, result);
}

// Reduces this member's chunk of all arrays, block by block. Only this member accesses that chunk of any array, so dest
// may be source.
Status reduce_partitioned(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                          const Reduction& how) {
    if (Status synced = group.sync(); !synced.ok()) return synced;
    alignas(64) std::array<std::byte, block_bytes> result;
    const Chunk chunk = chunk_of(count, group.size(), group.index());
    const std::uint64_t step = block_bytes / how.accumulator_size;
    Status done;
    for (std::uint64_t i = 0; i < chunk.count && done.ok(); i += step) {
        const std::uint64_t elements = std::min(step, chunk.count - i);
        const std::uint64_t at = (chunk.first + i) * how.size;
        done = combine_all(group, source + at, elements, how, result.data());
        if (done.ok())
            done = for_all(
                group, [&](int member) { return write(group, member, dest + at, result.data(), elements * how.size); });
    }
    return complete_and_sync(group, std::move(done));
}

Status reduce_published(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                        const Reduction& how) {
    const auto all = publish(group, local_address(group, source), count * how.size);
    if (!all.ok()) return all.status();
    return combine(
        group, group.size(), [&](int member) { return all.value().of(member); }, count, how,
        local_address(group, dest));
}

// Runs a call in the group's library, if it has one that serves the call. `bytes` of each member select it.
std::optional<Status> run_by_library(Group& group, std::uint64_t dest, std::uint64_t source, npushmem_coll_call call,
                                     std::uint64_t bytes) {
    LibraryTeam* const library = group.library();
    if (library == nullptr) return std::nullopt;
    call.source = local_address(group, source);
    call.dest = local_address(group, dest);
    return library->run(call, bytes);
}

npushmem_coll_call reduction(std::uint32_t collective, std::uint64_t count, ReduceOperation operation,
                             ReduceElement element) {
    return {.struct_size = 0,
            .collective = collective,
            .operation = static_cast<std::uint32_t>(operation),
            .type = static_cast<std::uint32_t>(element),
            .root = 0,
            .reserved = 0,
            .source = nullptr,
            .dest = nullptr,
            .count = count,
            .counts = nullptr};
}

// The same for collectives of bytes.
npushmem_coll_call transfer(std::uint32_t collective, std::uint64_t count, int root = 0) {
    npushmem_coll_call call{};
    call.collective = collective;
    call.root = root;
    call.count = count;
    return call;
}

// Copies the bytes of each member to its block of dest. `each`: they are the receiver's block at the member's source.
Status gather_by_lines(Group& group, SmallExchange& lines, std::byte* dest, const std::byte* source,
                       std::uint64_t bytes, bool each) {
    Status done = lines.run(source, bytes, each);
    for (int member = 0; member < group.size() && done.ok(); ++member, dest += bytes)
        std::memcpy(dest, lines.of(member), bytes);
    return done;
}

// The same between arrays in symmetric memory.
Status gather_by_lines(Group& group, SmallExchange& lines, std::uint64_t dest, std::uint64_t source,
                       std::uint64_t bytes, bool each) {
    return gather_by_lines(group, lines, local_address(group, dest), local_address(group, source), bytes, each);
}

// Publishes the bytes for the others, and copies those of each member to its block of dest. `each`: its source has a
// block for every member.
Status gather_published(Group& group, std::byte* dest, const std::byte* source, std::uint64_t bytes, bool each) {
    const std::uint64_t blocks = each ? static_cast<std::uint64_t>(group.size()) : 1;
    const std::uint64_t skipped = each ? static_cast<std::uint64_t>(group.index()) * bytes : 0;
    const auto all = publish(group, source, blocks * bytes);
    Status done = all.status();
    for (int member = 0; member < group.size() && done.ok(); ++member, dest += bytes) {
        const Place from = all.value().of(member);
        done = read(group, {from.member, from.offset + skipped}, dest, bytes);
    }
    return done;
}

// The same between arrays in symmetric memory.
Status gather_published(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, bool each) {
    return gather_published(group, local_address(group, dest), local_address(group, source), bytes, each);
}

using HeldBlock = std::unique_ptr<std::byte[]>;

// Synchronises. Returns memory of the process; fails on all members if one of them has none.
Result<HeldBlock> hold_block(Group& group, std::uint64_t bytes) {
    HeldBlock held(new (std::nothrow) std::byte[bytes]);
    const std::uint64_t mine = held != nullptr ? 1 : 0;
    const auto all = publish(group, &mine, sizeof mine);
    Status done = all.status();
    for (int member = 0; member < group.size() && done.ok(); ++member) {
        std::uint64_t theirs = 0;
        done = read(group, all.value().of(member), &theirs, sizeof theirs);
        if (done.ok() && theirs == 0)
            done = {Code::memory,
                    fmt::format("member {} has no memory for the {} bytes that a reduce-scatter with equal "
                                "dest and source holds; give it another dest",
                                member, bytes)};
    }
    return done.ok() ? Result<HeldBlock>(std::move(held)) : Result<HeldBlock>(done);
}

// Combines this member's block of all sources. Where dest is source, others read it until the last barrier.
Status reduce_scatter_blocks(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                             const Reduction& how) {
    HeldBlock held;
    if (dest == source) {
        auto made = hold_block(group, count * how.size);
        if (!made.ok()) return made.status();
        held = std::move(made).value();
    } else if (Status synced = group.sync(); !synced.ok()) {
        return synced;
    }
    std::byte* const into = held ? held.get() : local_address(group, dest);
    const std::uint64_t step = block_bytes / how.accumulator_size;
    Status done;
    for (std::uint64_t i = 0; i < count && done.ok(); i += step) {
        const std::uint64_t from = source + (static_cast<std::uint64_t>(group.index()) * count + i) * how.size;
        done = combine_all(group, from, std::min(step, count - i), how, into + i * how.size);
    }
    done = sync_after(group, std::move(done));
    if (done.ok() && held) std::memcpy(local_address(group, dest), held.get(), count * how.size);
    return done;
}

// What two members must know of each other for alltoallv.
struct PairRecord {
    Block receives;  // this member, from that one
    std::uint64_t sends;
};

// Gives each member its element of `own`; element m of `theirs` becomes what member m had for this one.
Status exchange_pairs(Group& group, std::span<const PairRecord> own, std::span<PairRecord> theirs) {
    constexpr std::uint64_t size = sizeof(PairRecord);
    if (SmallExchange* const lines = lines_for(group, size, true)) {
        return gather_by_lines(group, *lines, reinterpret_cast<std::byte*>(theirs.data()),
                               reinterpret_cast<const std::byte*>(own.data()), size, true);
    }
    // Some members at a time write to the workspace of all, one after another in it.
    constexpr int at_a_time = Workspace::contribution_bytes / size;
    Status done;
    for (int first = 0; first < group.size(); first += at_a_time) {
        const std::uint64_t at = next_half(group);
        const int turn = group.index() - first;
        if (done.ok() && turn >= 0 && turn < at_a_time)
            done = for_all(group, [&](int member) {
                return write(group, member, at + static_cast<std::uint64_t>(turn) * size,
                             &own[static_cast<std::size_t>(member)], size);
            });
        done = complete_and_sync(group, std::move(done));
        const int many = std::min(at_a_time, group.size() - first);
        std::memcpy(&theirs[static_cast<std::size_t>(first)], local_address(group, at),
                    static_cast<std::size_t>(many) * size);
    }
    return done;
}

Status sizes_differ(int sender, std::uint64_t sent, int receiver, std::uint64_t expected) {
    return {Code::mismatch, fmt::format("member {} sends {} bytes to member {} of the team, which expects {} bytes",
                                        sender, sent, receiver, expected)};
}

// The exchange of the sizes has synchronised the members: their sources are ready.
Status collect_pull(Group& group, std::uint64_t dest, std::span<const Block> sources) {
    std::vector<std::uint64_t> starts(sources.size());
    std::transform_exclusive_scan(sources.begin(), sources.end(), starts.begin(), dest, std::plus{},
                                  [](const Block& block) { return block.bytes; });
    const Status done = for_all(group, [&](int member) {
        const auto i = static_cast<std::size_t>(member);
        return read(group, member, sources[i].offset, local_address(group, starts[i]), sources[i].bytes);
    });
    return sync_after(group, std::move(done));
}

Status collect_published(Group& group, std::uint64_t at, std::uint64_t dest, std::span<const Block> sources,
                         std::uint64_t largest) {
    const Block& own = sources[static_cast<std::size_t>(group.index())];
    const auto all = publish(group, at, local_address(group, own.offset), own.bytes, largest);
    Status done = all.status();
    std::byte* to = local_address(group, dest);
    for (int member = 0; member < group.size() && done.ok(); ++member) {
        const std::uint64_t theirs = sources[static_cast<std::size_t>(member)].bytes;
        done = read(group, all.value().of(member), to, theirs);
        to += theirs;
    }
    return done;
}

}  // namespace

Status gather_small(Group& group, const void* mine, std::uint64_t bytes, void* all) {
    if (SmallExchange* const lines = lines_for(group, bytes, false)) {
        return gather_by_lines(group, *lines, static_cast<std::byte*>(all), static_cast<const std::byte*>(mine), bytes,
                               false);
    }
    return gather_published(group, static_cast<std::byte*>(all), static_cast<const std::byte*>(mine), bytes, false);
}

Status broadcast(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root, bool to_root) {
    if (bytes == 0) return {};
    if (auto done = run_by_library(group, dest, source, transfer(NPUSHMEM_COLL_BROADCAST, bytes, root), bytes)) {
        if (done->ok() && group.index() == root && to_root)
            return read(group, root, source, local_address(group, dest), bytes);
        return *done;
    }
    SmallBroadcast* ring = group.small_broadcast();
    if (ring != nullptr && bytes > ring->max_broadcast()) ring = nullptr;
    const bool written = group.index() != root || to_root;
    switch (broadcast_method(group, bytes, ring != nullptr)) {
        case Method::ring:
            return ring->broadcast(local_address(group, source), written ? local_address(group, dest) : nullptr, bytes,
                                   root);
        case Method::pull: return broadcast_pull(group, dest, source, bytes, root, to_root);
        case Method::hosts: return broadcast_by_hosts(group, dest, source, bytes, root, to_root);
        case Method::scatter: return broadcast_scatter_allgather(group, dest, source, bytes, root, to_root);
        default: return broadcast_push(group, dest, source, bytes, root, to_root);
    }
}

Status fcollect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes) {
    if (bytes == 0) return {};
    if (auto done = run_by_library(group, dest, source, transfer(NPUSHMEM_COLL_FCOLLECT, bytes), bytes)) return *done;
    SmallExchange* const lines = lines_for(group, bytes, false);
    const Method method = fcollect_method(group, bytes, lines != nullptr);
    if (method == Method::published) return gather_published(group, dest, source, bytes, false);
    if (method == Method::lines) return gather_by_lines(group, *lines, dest, source, bytes, false);
    if (method == Method::hosts) return fcollect_by_hosts(group, dest, source, bytes);
    if (method == Method::pull)
        return pull_from_all(group, [&](int member) {
            return read(group, member, source, local_address(group, dest + static_cast<std::uint64_t>(member) * bytes),
                        bytes);
        });
    const Message to_all{dest + static_cast<std::uint64_t>(group.index()) * bytes, local_address(group, source), bytes};
    return push_to_all(group, {}, [&](int /*member*/) { return to_all; });
}

Status collect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, std::uint64_t room) {
    const Block mine{source, bytes};  // a member without bytes may have given another source
    std::vector<Block> sources(static_cast<std::size_t>(group.size()));
    // After a failure, which may be of this member alone, the others wait for its message.
    const auto fail = [&](Status done) { return push_to_all(group, std::move(done), [](int) { return Message{}; }); };
    Status gathered = gather_small(group, &mine, sizeof mine, sources.data());
    // Takes the half also where it is not used: a member that has failed alone does not know whether the others use it.
    // Not with a library: its call may not synchronise, and the next use of the other half needs that.
    const bool may_publish = group.all_mapped() && group.library() == nullptr;
    const std::uint64_t half = may_publish ? next_half(group) : 0;
    if (!gathered.ok()) return fail(std::move(gathered));
    std::uint64_t before = 0;
    std::uint64_t largest = 0;
    std::uint64_t left = room;
    bool fits = true;
    for (int member = 0; member < group.size(); ++member) {
        const Block& theirs = sources[static_cast<std::size_t>(member)];
        if (member < group.index()) before += theirs.bytes;
        largest = std::max(largest, theirs.bytes);
        fits = fits && theirs.bytes <= left;
        left -= fits ? theirs.bytes : 0;
    }
    // All members read the same counts, so all get the same result.
    if (!fits) return fail({Code::range, "the members' contributions together exceed the memory at dest"});
    if (left < room && group.library() != nullptr) {
        std::vector<std::uint64_t> counts;
        for (const Block& block : sources) counts.push_back(block.bytes);
        npushmem_coll_call call = transfer(NPUSHMEM_COLL_COLLECT, bytes);
        call.counts = counts.data();
        if (auto ran = run_by_library(group, dest, source, call, largest)) return *ran;
    }
    const Method selected = group.method(NPUSHMEM_COLL_COLLECT, largest);
    const bool publishes = selected == Method::published
                               ? largest <= Workspace::contribution_bytes
                               : selected == Method::automatic && prefers_published(group, largest);
    if (may_publish && publishes) return collect_published(group, half, dest, sources, largest);
    // With a HostSync a member that has failed above pushes, so all do.
    if (group.host_sync() == nullptr && selected == Method::pull) return collect_pull(group, dest, sources);
    const Message to_all{dest + before, local_address(group, source), bytes};
    return push_to_all(group, {}, [&](int /*member*/) { return to_all; });
}

Status alltoall(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes) {
    if (bytes == 0) return {};
    if (auto done = run_by_library(group, dest, source, transfer(NPUSHMEM_COLL_ALLTOALL, bytes), bytes)) return *done;
    SmallExchange* const lines = lines_for(group, bytes, true);
    const Method method = alltoall_method(group, bytes, lines != nullptr);
    if (method == Method::published) return gather_published(group, dest, source, bytes, true);
    if (method == Method::lines) return gather_by_lines(group, *lines, dest, source, bytes, true);
    const std::uint64_t mine = static_cast<std::uint64_t>(group.index()) * bytes;
    if (method == Method::pull)
        return pull_from_all(group, [&](int member) {
            return read(group, member, source + mine,
                        local_address(group, dest + static_cast<std::uint64_t>(member) * bytes), bytes);
        });
    return push_to_all(group, {}, [&](int member) {
        const std::uint64_t from = source + static_cast<std::uint64_t>(member) * bytes;
        return Message{dest + mine, local_address(group, from), bytes};
    });
}

Status alltoalls(Group& group, std::uint64_t dest, std::uint64_t source, const Strides& strides) {
    if (strides.count == 0) return {};
    if (strides.dst == 1 && strides.sst == 1) return alltoall(group, dest, source, strides.count * strides.size);
    const std::uint64_t to = static_cast<std::uint64_t>(group.index()) * strides.count * strides.dst * strides.size;
    const StridedBlocks blocks{dest + to, strides.dst * strides.size, strides.sst * strides.size, strides.size,
                               strides.count};
    Status done = for_all(group, [&](int member) {
        const std::byte* from = local_address(
            group, source + static_cast<std::uint64_t>(member) * strides.count * strides.sst * strides.size);
        std::byte* const there = group.mapped_address(member, blocks.offset);
        if (there == nullptr) return group.put_blocks(member, blocks, from);
        copy_blocks({there, blocks.remote_stride}, {from, blocks.local_stride}, blocks.bytes, blocks.count);
        return Status{};
    });
    return complete_and_sync(group, std::move(done));
}

Status alltoallv(Group& group, std::span<const Block> dest, std::span<const Block> source) {
    std::vector<PairRecord> own(dest.size());
    std::vector<PairRecord> theirs(dest.size());
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = {dest[i], source[i].bytes};
    Status exchanged = exchange_pairs(group, own, theirs);
    Status mismatch;
    const Status done = push_to_all(group, std::move(exchanged), [&](int member) -> Message {
        const auto i = static_cast<std::size_t>(member);
        if (own[i].receives.bytes != theirs[i].sends)
            mismatch = sizes_differ(member, theirs[i].sends, group.index(), own[i].receives.bytes);
        const Block& there = theirs[i].receives;
        if (there.bytes == source[i].bytes) return {there.offset, local_address(group, source[i].offset), there.bytes};
        mismatch = sizes_differ(group.index(), source[i].bytes, member, there.bytes);
        return {};
    });
    return done.ok() ? mismatch : done;
}

Status reduce(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, ReduceOperation operation,
              ReduceElement element) {
    const Reduction how(operation, element);
    if (count == 0) return {};
    if (auto done = run_by_library(group, dest, source, reduction(NPUSHMEM_COLL_REDUCE, count, operation, element),
                                   count * how.size))
        return *done;
    SmallExchange* const lines = lines_for(group, count, how, false);
    const Method method = reduce_method(group, count, how, lines != nullptr);
    if (method == Method::hosts) return reduce_by_hosts(group, dest, source, count, how);
    if (method == Method::lines) return combine_by_lines(group, *lines, dest, source, count, false, how, group.size());
    return method == Method::published ? reduce_published(group, dest, source, count, how)
                                       : reduce_partitioned(group, dest, source, count, how);
}

Status reduce_scatter(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                      ReduceOperation operation, ReduceElement element) {
    const Reduction how(operation, element);
    if (count == 0) return {};
    if (auto done = run_by_library(group, dest, source,
                                   reduction(NPUSHMEM_COLL_REDUCESCATTER, count, operation, element), count * how.size))
        return *done;
    SmallExchange* const lines = lines_for(group, count, how, true);
    if (reduce_scatter_method(group, count * how.size, lines != nullptr) == Method::lines)
        return combine_by_lines(group, *lines, dest, source, count, true, how, group.size());
    return reduce_scatter_blocks(group, dest, source, count, how);
}

}  // namespace npushmem::coll
