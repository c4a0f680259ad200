// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/symmetric_memory.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace npushmem::moe {

namespace {

std::uintptr_t number_of(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

Result<SymmetricBlock> allocate_block(SymmetricMemory& memory, Bytes size, const char* purpose) {
    auto taken = memory.allocate(size);
    if (!taken.ok()) return taken.status().within(fmt::format("moe: {} bytes for {}", size.value(), purpose));
    return SymmetricBlock(memory, taken.value());
}

Status check_address(const Extent& extent, ElementSize element) {
    if (extent.size == Bytes{0}) return {};
    if (extent.begin == nullptr) {
        return {Code::argument,
                fmt::format("moe: {} is null but must hold {} bytes", extent.name, extent.size.value())};
    }
    const auto size = static_cast<std::uint64_t>(element);
    if (number_of(extent.begin) % size == 0) return {};
    return {Code::argument, fmt::format("moe: {} at {} is not aligned to its {}-byte elements", extent.name,
                                        static_cast<const void*>(extent.begin), size)};
}

Status check_apart(const Extent& a, const Extent& b) {
    const std::uintptr_t a_begin = number_of(a.begin);
    const std::uintptr_t b_begin = number_of(b.begin);
    const bool apart = a.size == Bytes{0} || b.size == Bytes{0} || a_begin + a.size.value() <= b_begin ||
                       b_begin + b.size.value() <= a_begin;
    if (apart) return {};
    return {Code::argument, fmt::format("moe: {} ({} bytes at {}) overlaps {} ({} bytes at {}); give separate memory",
                                        a.name, a.size.value(), static_cast<const void*>(a.begin), b.name,
                                        b.size.value(), static_cast<const void*>(b.begin))};
}

}  // namespace npushmem::moe
