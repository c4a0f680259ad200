#include "core/api/checks.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/coll/call_check.hpp"

namespace npushmem::api {

void disable_fast_paths(const Runtime& runtime, FastMap& map) {
    if (runtime.settings().check || runtime.settings().npu_check) map.mapped_pes = 0;
}

Status check_allocated(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe) {
    const AllocationTracker* tracker = runtime.slices().heap().allocation_tracker();
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

}  // namespace npushmem::api
