// SPDX-License-Identifier: BSD-3-Clause
// Formats source lines, findings and violated rules. Out of line and cold, so that the operations stay small.
#include "core/npu/source_line.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "npushmem/npu/copy_shape.hpp"
#include "npushmem/npu/core_state.hpp"
#include "npushmem/npu/error.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/views.hpp"

namespace npushmem::npu {
namespace {

// The folder in which `file` was built; `path` is its path in the library. Empty if unknown.
constexpr std::string_view folder_of(std::string_view file, std::string_view path) {
    return file.ends_with(path) ? file.substr(0, file.size() - path.size()) : std::string_view{};
}

}  // namespace

std::string text_of(const SourceLocation& where) {
    if (where.line() == 0) return "the library";
    constexpr std::string_view built_in = folder_of(__FILE__, "core/npu/failures.cpp");
    std::string_view file = where.file_name();
    const bool own = file.starts_with(built_in) && file.substr(built_in.size()).starts_with("core/");
    if (own) file.remove_prefix(built_in.size());
    return fmt::format("{}:{}", file, where.line());
}

namespace {

constexpr std::array advices{
    "",
    "allocate with ub_alloc, or place buffers at multiples of 32; use data_copy_pad for odd GM addresses",
    "split the work into tiles that fit, and count the padding up to 32 bytes of each block",
    "give each buffer bytes of its own, release before reuse, and keep out of the library's part",
    "set_flag on the pipe that comes first and wait_flag on the one that comes after (dcci after scalar stores to GM)",
    "copy or fill the buffer first; process or copy out only the elements that are data",
    "use data_copy_pad for lengths that are no multiple of 32 bytes, and split beyond the limits",
    "dcci the line after the wait and before the load; the wait refreshes the signal's own line only",
    "before the signal: dcci the stored lines, and set_flag/wait_flag<copy_out, scalar> or quiet after copies out",
    "give each writer 64-byte lines of its own, and dcci right after the stores",
    "allocate it symmetrically on all PEs, free it after its last use, and check the index",
    "align the address to the size of the access",
    "remove it",
    "let the reader wait for the writer's signal, or the writer for the reader's, before the copy",
    "separate the ranges by core, use atomics, or order the writers by a signal or core_barrier",
    "put a pipe_barrier of that pipe between the two commands",
    "wait for each flag before it is set again, or use two ids",
    "set the awaited word or flag on every path that the kernels take",
    "use ids 0 to 5",
    "wait for every flag that was set",
    "use the flag from the pipe that writes to the pipe that signals: copy_out to scalar",
    "remove it; to make S wait for a pipe, wait for a flag",
    "clear_atomic right after the copies that shall add",
    "call core_barrier on all cores, from the same line, equally often",
    "launch the same number of blocks and pass the same team and variant on every PE",
    "zero the state on all members before a team's index is used again, and call the barrier equally often",
    "wait for a flag from copy_out before the buffer is filled again",
    "allocate the same sizes in the same order on every PE",
};

std::string describe(const FindingSide& side) {
    return fmt::format("{} on PE {} core {} pipe {} at {}", side.what, side.pe, side.core, name_of(side.pipe),
                       side.elsewhere.empty() ? text_of(side.where) : side.elsewhere);
}

}  // namespace

std::string id_of(Hazard hazard) {
    return hazard == Hazard::none ? std::string{} : fmt::format("H{}", static_cast<int>(hazard));
}

const char* advice_for(Hazard hazard) { return advices.at(static_cast<std::size_t>(hazard)); }

std::string Finding::text() const {
    std::string text =
        fmt::format("{} {}in {}: {}\n  {}", id_of(hazard), hint() ? "(hint) " : "", kernel, detail, describe(here));
    if (other.what != nullptr) text += "\n  against " + describe(other);
    if (!place.empty()) text += "\n  memory: " + place;
    if (times > 1) text += fmt::format("\n  {} times between these lines", times);
    return text + "\n  advice: " + advice_for(hazard);
}

}  // namespace npushmem::npu

namespace npushmem::npu::detail {
namespace {

[[noreturn]] void fail(Code code, Hazard hazard, const std::string& message, const Where& where) {
    throw KernelError(code, fmt::format("{} ({}) [{}]", message, text_of(where), id_of(hazard)), hazard, where);
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void fail_subview(const char* kind, std::size_t offset, std::size_t count, std::size_t size) {
    throw KernelError(Code::range, fmt::format("{} view: elements [{}, {} + {}) are outside a view of {}", kind, offset,
                                               offset, count, size));
}

void fail_plain_copy(const char* operation, const void* ub, const void* gm, std::size_t element, std::size_t count,
                     std::size_t ub_room, std::size_t gm_room, const Where& where) {
    const std::size_t bytes = count * element;
    const std::size_t room = ub_room < gm_room ? ub_room : gm_room;
    if (count == 0 || count > room) {
        const Hazard beyond = ub_room <= gm_room ? Hazard::ub_overflow : Hazard::bad_address;
        fail(Code::range, count == 0 ? Hazard::copy_shape : beyond,
             fmt::format("{}: count {} must be 1 to {}, the smaller of both views", operation, count, room), where);
    }
    if (bytes % ub_alignment != 0) {
        fail(Code::argument, Hazard::copy_shape,
             fmt::format("{}: {} elements of {} bytes are {} bytes; a plain copy moves multiples of 32 bytes only, "
                         "use data_copy_pad for other lengths",
                         operation, count, element, bytes),
             where);
    }
    if (number(ub) % ub_alignment != 0) {
        fail(Code::argument, Hazard::alignment,
             fmt::format("{}: the UB address {} must be 32-byte aligned", operation, fmt::ptr(ub)), where);
    }
    fail(Code::argument, Hazard::alignment,
         fmt::format("{}: the GM address {} must be aligned to its {}-byte elements", operation, fmt::ptr(gm), element),
         where);
}

void fail_shape(Hazard hazard, const char* operation, const char* rule, std::size_t value, const Where& where) {
    fail(Code::argument, hazard, fmt::format("{}: {}: {}", operation, rule, value), where);
}

void fail_vector(const char* operation, std::uintptr_t addresses, std::size_t count, std::size_t room,
                 const Where& where) {
    if (count == 0 || count > room) {
        fail(Code::range, count == 0 ? Hazard::copy_shape : Hazard::ub_overflow,
             fmt::format("{}: count {} must be 1 to {}, the smallest of the views", operation, count, room), where);
    }
    fail(Code::argument, Hazard::alignment,
         fmt::format("{}: every UB address must be 32-byte aligned; one is off by {} bytes", operation,
                     addresses % ub_alignment),
         where);
}

void fail_flag(const char* operation, int id, const Where& where) {
    const char* why = id == flag_ids || id == flag_ids + 1 ? " (6 and 7 belong to the library)" : "";
    fail(Code::range, Hazard::flag_id,
         fmt::format("{}: flag id {} must be 0 to {}{}", operation, id, flag_ids - 1, why), where);
}

void fail_scalar(const char* operation, const void* address, std::size_t size, const Where& where) {
    fail(Code::argument, Hazard::misaligned_scalar,
         fmt::format("{}: address {} must be aligned to {} bytes and not be null", operation, fmt::ptr(address), size),
         where);
}

void fail_ub(std::size_t wanted, std::size_t offset, const UbRegion& ub, const Where& where) {
    if (offset % ub_alignment != 0) {
        fail(Code::argument, Hazard::alignment, fmt::format("UB offset {} must be a multiple of 32", offset), where);
    }
    const bool in_reserved = offset >= ub.bytes && offset - ub.bytes < ub.reserved;
    fail(Code::memory, in_reserved ? Hazard::ub_overlap : Hazard::ub_overflow,
         fmt::format(
             "UB exhausted: {} bytes at offset {} do not fit into {} bytes ({} more are reserved for the library)",
             wanted, offset, ub.bytes, ub.reserved),
         where);
}

void fail_argument(Hazard hazard, const char* operation, const char* rule, const Where& where) {
    fail(Code::argument, hazard, fmt::format("{}: {}", operation, rule), where);
}

}  // namespace npushmem::npu::detail
