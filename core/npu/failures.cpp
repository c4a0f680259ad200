// The messages of violated rules. Out of line and cold, so that the operations stay small.
#include <fmt/format.h>

#include "core/npu/source_line.hpp"
#include "npushmem/npu/copy_shape.hpp"
#include "npushmem/npu/core_state.hpp"
#include "npushmem/npu/error.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/views.hpp"

namespace npushmem::npu::detail {
namespace {

[[noreturn]] void fail(Code code, Hazard hazard, const std::string& message, const Where& where) {
    throw KernelError(code, fmt::format("{} ({}) [{}]", message, text_of(where), id_of(hazard)), hazard, where);
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void fail_subview(const char* kind, std::size_t offset, std::size_t count, std::size_t size) {
    throw KernelError(Code::range, fmt::format("{} view: elements [{}, {} + {}) were asked of a view of {}", kind,
                                               offset, offset, count, size));
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
