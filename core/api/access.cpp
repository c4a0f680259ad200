// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/access.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/api/contexts.hpp"
#include "core/base/awaited_bytes.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/coll/call_check.hpp"
#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem::api {

void disable_fast_paths(const Runtime& runtime, FastMap& map) {
    if (runtime.settings().check || runtime.settings().npu_check) map.mapped_pes = 0;
}

[[gnu::cold]] void wake_pe(std::byte* slice, const void* target, std::uint64_t bytes) {
    const std::uint32_t woken = wake_sleepers_in(slice, target, bytes);
    if (const Runtime* const up = runtime_unnoted(); up != nullptr && woken > 0) up->waiter().count_woken(woken);
}

Status check_allocated(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe) {
    const AllocationTracker* tracker =
        runtime.settings().check ? runtime.slices().heap().allocation_tracker() : nullptr;
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - runtime.slices().fast_map().heap;
    if (tracker == nullptr || offset >= runtime.slices().fast_map().heap_bytes) return {};
    Status alive = tracker->check(offset, bytes);
    if (alive.ok()) return alive;
    return {alive.code(), fmt::format("{} {}, for PE {}: {} bytes there {}", what, object, pe, bytes, alive.message())};
}

Status check_no_overlap(const Runtime& runtime, const void* dest, std::uint64_t dest_bytes, const void* source,
                        std::uint64_t source_bytes) {
    if (!runtime.settings().check || dest_bytes == 0 || source_bytes == 0) return {};
    const auto to = reinterpret_cast<std::uintptr_t>(dest);
    const auto from = reinterpret_cast<std::uintptr_t>(source);
    const auto begin = std::max(to, from);
    const auto end = std::min(to + dest_bytes, from + source_bytes);
    if (begin >= end) return {};
    return {Code::argument, fmt::format("dest {}, {} bytes, and source {}, {} bytes, overlap in {} bytes on PE {}",
                                        dest, dest_bytes, source, source_bytes, end - begin, runtime.my_pe())};
}

Status check_same_call(Team& team, const char* function, const Call& call, const Status& own) {
    if (!runtime_unnoted()->settings().check) return own;
    coll::CallRecord record;
    record.name(function);
    record.select(team.selected_collectives());
    record.sequence = ++team.checked_calls;
    record.count = call.count;
    record.root = call.root;
    record.dst = call.dst;
    record.sst = call.sst;
    record.dest = call.dest;
    record.source = call.source;
    record.counts_differ = call.counts_differ ? 1 : 0;
    record.code = static_cast<std::int32_t>(own.code());
    const PeRange& members = team.members().range();
    record.members[0] = members.at(0);
    record.members[1] = members.table == nullptr ? members.stride : 0;
    record.members[2] = members.count;
    record.list_hash = team.members().list_hash();
    const Status same = coll::check_call(team, record, team.name());
    return own.ok() ? same : own;
}

namespace {

RemoteAccess::Completion completion_of(bool deferred) {
    return deferred ? RemoteAccess::Completion::deferred : RemoteAccess::Completion::local;
}

Status check_pe(const Runtime& runtime, int pe) {
    if (pe >= 0 && pe < runtime.npes()) return {};
    return {Code::range, fmt::format("PE {} does not exist; PEs are 0 to {}", pe, runtime.npes() - 1)};
}

Status check_local(const char* what, const void* memory, std::uint64_t bytes) {
    if (memory != nullptr) return {};
    return {Code::argument, fmt::format("{} is NULL, for {} bytes", what, bytes)};
}

Status copied(void* to, const void* from, std::uint64_t bytes) {
    std::memcpy(to, from, bytes);
    return {};
}

Status copied(const Runtime& up, bool same_pe, StridedBuffer<std::byte> to, StridedBuffer<const std::byte> from,
              const StridedBlocks& blocks) {
    Status apart;
    for (std::uint64_t i = 0; same_pe && up.settings().check && i < blocks.count && apart.ok(); ++i)
        apart =
            check_no_overlap(up, to.first + i * to.stride, blocks.bytes, from.first + i * from.stride, blocks.bytes);
    if (apart.ok()) copy_blocks(to, from, blocks.bytes, blocks.count);
    return apart;
}

// `target`: a mapped address of the PE, which may await what was stored there.
void wake(const Runtime& up, int pe, const void* target, std::uint64_t bytes) {
    if (up.slices().fast_map().has_sleepers()) wake_pe(up.slices().slice_of(pe), target, bytes);
}

void report(const char* function, const Status& done) {
    if (!done.ok()) fail(function, done);
}

// Runs `body` with the runtime and the world PE, and reports its failure. Returns whether it succeeded.
template <class Body>
bool with_pe(const char* function, const Context& context, int number, Body&& body) {
    Runtime* up = runtime();
    if (up == nullptr) {
        fail(function, context.state == Context::State::destroyed ? check_context(context) : not_running());
        return false;
    }
    const ContextUse::Call use(context);
    const auto pe = world_pe(context, number);
    const Status done = !use.status().ok() ? use.status() : pe.ok() ? body(*up, pe.value()) : pe.status();
    report(function, done);
    return done.ok();
}

// An object on a PE that only a transport reaches.
struct RemoteObject {
    int pe;
    std::uint64_t offset;  // in the PE's slice
};

// Returns the target of a call that needs no single checks; nothing if one of them could fail, or if the PE is mapped.
std::optional<RemoteObject> unmapped_fast_path(const Context& context, const void* object, std::uint64_t bytes,
                                               int number) {
    const Runtime* const up = runtime();
    if (up == nullptr || up->settings().check || context.use != nullptr) return std::nullopt;
    if (static_cast<std::uint32_t>(number) >= static_cast<std::uint32_t>(context.members.count)) return std::nullopt;
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - context.map.heap;
    const std::uint64_t room = context.map.heap_bytes;
    if (bytes - 1 >= room || offset > room - bytes) return std::nullopt;
    const int pe = context.members.at(number);
    if (up->slices().mapped(pe, offset) != nullptr) return std::nullopt;
    return RemoteObject{pe, offset};
}

Status check_transfer(const Runtime& up, const void* object, const void* local, const char* object_name,
                      const char* local_name, std::uint64_t bytes, int pe) {
    Status checked = check_object(up, object_name, object, bytes, pe);
    return checked.ok() ? check_local(local_name, local, bytes) : checked;
}

void put(void* dest, const void* source, std::uint64_t bytes, int number, const char* function, const Context& given,
         RemoteAccess::Completion completion) try {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (const auto there = unmapped_fast_path(context, dest, bytes, number); there && source != nullptr)
        return report(function, context.remote->put(there->pe, there->offset, source, bytes, completion));
    with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        if (bytes == 0) return {};
        Status checked = check_transfer(up, dest, source, "dest", "source", bytes, pe);
        if (checked.ok() && pe == up.my_pe()) checked = check_no_overlap(up, dest, bytes, source, bytes);
        if (!checked.ok()) return checked;
        const std::uint64_t offset = up.slices().offset_of(dest);
        if (void* target = up.slices().mapped(pe, offset)) {
            Status done = copied(target, source, bytes);
            wake(up, pe, target, bytes);
            return done;
        }
        return context.remote->put(pe, offset, source, bytes, completion);
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

void get(void* dest, const void* source, std::uint64_t bytes, int number, const char* function, const Context& given,
         RemoteAccess::Completion completion) try {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (const auto there = unmapped_fast_path(context, source, bytes, number); there && dest != nullptr)
        return report(function, context.remote->get(there->pe, there->offset, dest, bytes, completion));
    with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        if (bytes == 0) return {};
        Status checked = check_transfer(up, source, dest, "source", "dest", bytes, pe);
        if (checked.ok() && pe == up.my_pe()) checked = check_no_overlap(up, dest, bytes, source, bytes);
        if (!checked.ok()) return checked;
        const std::uint64_t offset = up.slices().offset_of(source);
        if (const void* target = up.slices().mapped(pe, offset)) return copied(dest, target, bytes);
        return context.remote->get(pe, offset, dest, bytes, completion);
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

}  // namespace

namespace {

Status not_symmetric(const Runtime& runtime, const char* what, const void* object) {
    const FastMap& map = runtime.slices().fast_map();
    const StaticVariables& statics = runtime.slices().statics();
    const std::string why = statics.reason_not_symmetric();
    if (const void* const symmetric = runtime.buffers().symmetric_address(object); symmetric != nullptr)
        return {Code::not_symmetric,
                fmt::format("{} {} is in a registered buffer, where its symmetric address is {}; pass that address",
                            what, object, symmetric)};
    return {Code::not_symmetric,
            fmt::format(
                "{} {} is not symmetric: it {}; symmetric are memory from npushmem_malloc and related functions, which "
                "is at {:#x} to {:#x}, {}",
                what, object, describe_address(object), map.heap, map.heap + map.heap_bytes,
                why.empty() ? fmt::format("and the executable's global and static variables, at {:#x} to {:#x}",
                                          statics.image().begin, statics.image().begin + statics.image().bytes)
                            : fmt::format("but not the executable's variables, because {}", why))};
}

Status check_heap_range(const FastMap& map, const char* what, const void* object, std::uint64_t bytes,
                        std::uint64_t left) {
    if (bytes == std::numeric_limits<std::uint64_t>::max())
        return {Code::range, fmt::format("the number of bytes at {} {} overflows", what, object)};
    if (bytes <= left) return {};
    return {Code::range, fmt::format("{} bytes at {} {} reach beyond the symmetric heap, {:#x} to {:#x}, which ends {} "
                                     "bytes after it",
                                     bytes, what, object, map.heap, map.heap + map.heap_bytes, left)};
}

// pe -1: every PE.
Status check_memory(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe) {
    if (object == nullptr) return {Code::argument, fmt::format("{} is NULL", what)};
    const FastMap& map = runtime.slices().fast_map();
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - map.heap;
    if (offset < map.heap_bytes) return check_heap_range(map, what, object, bytes, map.heap_bytes - offset);
    if (runtime.slices().statics().holds(object)) return runtime.slices().statics().check(what, object, bytes, pe);
    return not_symmetric(runtime, what, object);
}

}  // namespace

Status check_object(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe) {
    if (Status checked = check_pe(runtime, pe); !checked.ok()) return checked;
    Status checked = check_memory(runtime, what, object, bytes, pe);
    return checked.ok() ? check_allocated(runtime, what, object, bytes, pe) : checked;
}

Status check_object_on_all_pes(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes) {
    Status checked = check_memory(runtime, what, object, bytes, -1);
    return checked.ok() ? check_allocated(runtime, what, object, bytes, runtime.my_pe()) : checked;
}

Result<int> world_pe(const Context& context, int pe) {
    if (pe >= 0 && pe < context.members.count) return context.members.at(pe);
    if (Status usable = check_context(context); !usable.ok()) return usable;
    const bool of_world = context.team == NPUSHMEM_TEAM_WORLD;
    return Status{Code::range, fmt::format("PE {} does not exist{}; PEs are 0 to {}", pe,
                                           of_world ? "" : " in the context's team", context.members.count - 1)};
}

void put_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context) {
    put(dest, source, bytes, pe, function, context, RemoteAccess::Completion::local);
}

void put_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context) {
    put(dest, source, bytes, pe, function, context, RemoteAccess::Completion::deferred);
}

void get_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context) {
    get(dest, source, bytes, pe, function, context, RemoteAccess::Completion::local);
}

void get_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context) {
    get(dest, source, bytes, pe, function, context, RemoteAccess::Completion::deferred);
}

void put_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int number) try {
    with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        blocks.offset = up.slices().offset_of(dest);
        void* const target = up.slices().mapped(pe, blocks.offset);
        if (target == nullptr) return context.remote->put_blocks(pe, blocks, source);
        Status done = copied(up, pe == up.my_pe(), {static_cast<std::byte*>(target), blocks.remote_stride},
                             {static_cast<const std::byte*>(source), blocks.local_stride}, blocks);
        wake(up, pe, target, (blocks.count - 1) * blocks.remote_stride + blocks.bytes);
        return done;
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

void get_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int number) try {
    with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        blocks.offset = up.slices().offset_of(source);
        const void* const target = up.slices().mapped(pe, blocks.offset);
        if (target == nullptr) return context.remote->get_blocks(pe, blocks, dest);
        return copied(up, pe == up.my_pe(), {static_cast<std::byte*>(dest), blocks.local_stride},
                      {static_cast<const std::byte*>(target), blocks.remote_stride}, blocks);
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

namespace {

// Returns true if the operation was done or its failure reported.
bool put_signal_unmapped(const Context& context, const char* function, const void* dest, const void* source,
                         std::uint64_t bytes, const std::uint64_t* signal_word, std::uint64_t signal, int operation,
                         int number, bool deferred) {
    const auto word = unmapped_fast_path(context, signal_word, sizeof *signal_word, number);
    const auto there = bytes > 0 ? unmapped_fast_path(context, dest, bytes, number) : word;
    const bool known = operation == NPUSHMEM_SIGNAL_OP_SET || operation == NPUSHMEM_SIGNAL_OP_ADD;
    const bool usable = word && there && known && word->offset % sizeof *signal_word == 0;
    if (!usable || (source == nullptr && bytes > 0)) return false;
    report(function,
           context.remote->put_signal(word->pe, bytes > 0 ? there->offset : 0, source, bytes, word->offset, signal,
                                      static_cast<std::uint32_t>(operation), completion_of(deferred)));
    return true;
}

}  // namespace

void put_signal_slow_path(const Context& given, const char* function, void* dest, const void* source,
                          std::uint64_t bytes, std::uint64_t* signal_word, std::uint64_t signal, int operation,
                          int number, bool deferred) try {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (put_signal_unmapped(context, function, dest, source, bytes, signal_word, signal, operation, number, deferred))
        return;
    with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        if (operation != NPUSHMEM_SIGNAL_OP_SET && operation != NPUSHMEM_SIGNAL_OP_ADD)
            return {Code::argument,
                    fmt::format("sig_op {} is neither NPUSHMEM_SIGNAL_OP_SET nor NPUSHMEM_SIGNAL_OP_ADD", operation)};
        Status checked = check_object(up, "sig_addr", signal_word, sizeof *signal_word, pe);
        if (checked.ok() && reinterpret_cast<std::uintptr_t>(signal_word) % sizeof *signal_word != 0)
            checked = {Code::argument,
                       fmt::format("sig_addr {} is not aligned to 8 bytes", static_cast<const void*>(signal_word))};
        if (checked.ok() && bytes > 0) checked = check_transfer(up, dest, source, "dest", "source", bytes, pe);
        if (!checked.ok()) return checked;
        if (void* word = up.slices().mapped(pe, up.slices().offset_of(signal_word))) {
            if (bytes > 0) std::memcpy(up.slices().mapped(pe, up.slices().offset_of(dest)), source, bytes);
            (void)apply_signal(word, signal, static_cast<std::uint32_t>(operation));  // the arguments are checked
            wake(up, pe, word, sizeof *signal_word);
            return {};
        }
        return context.remote->put_signal(pe, bytes > 0 ? up.slices().offset_of(dest) : 0, source, bytes,
                                          up.slices().offset_of(signal_word), signal,
                                          static_cast<std::uint32_t>(operation), completion_of(deferred));
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

bool atomic_slow_path(const Context& given, const char* function, const void* object, npushmem_atomic op, int number,
                      bool deferred) try {
    const ActingContext acting(given);
    const Context& context = *acting;
    const auto there = unmapped_fast_path(context, object, op.width, number);
    if (there && there->offset % op.width == 0) {
        op.pe = there->pe;
        op.offset = there->offset;
        const Status done = context.remote->atomic(op, completion_of(deferred));
        report(function, done);
        return done.ok();
    }
    return with_pe(function, context, number, [&](Runtime& up, int pe) -> Status {
        Status checked = check_object(up, "the object", object, op.width, pe);
        if (checked.ok() && reinterpret_cast<std::uintptr_t>(object) % op.width != 0)
            checked = {Code::argument,
                       fmt::format("the object {} is not aligned to its size, {} bytes", object, op.width)};
        if (!checked.ok()) return checked;
        op.pe = pe;
        op.offset = up.slices().offset_of(object);
        if (void* target = up.slices().mapped(pe, op.offset)) {
            const Code done = apply_atomic(target, op);
            if (done == Code::ok && op.operation != NPUSHMEM_ATOMIC_FETCH) wake(up, pe, target, op.width);
            return done == Code::ok ? Status{} : Status{done, fmt::format("operation {} does not exist", op.operation)};
        }
        return context.remote->atomic(op, completion_of(deferred));
    });
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

}  // namespace npushmem::api
