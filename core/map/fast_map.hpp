// SPDX-License-Identifier: BSD-3-Clause
// The data of every operation's fast path. The first cache line has the own heap and the mapped peers' heaps. The
// second has the executable's variables and is read for addresses outside the heap. All fields are zero outside
// init..finalize, so that one comparison checks "initialised", "PE in range", "PE mapped" and "symmetric".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace npushmem {

// Copies a block, like std::memcpy, of a size in one of two ranges. Other blocks gain nothing.
// - Some kilobytes: memcpy's own dispatch costs as much as our checks. A put of 1 KiB would take a sixth longer than
//   memcpy alone.
// - 1 to 2 MiB: on AMD CPUs, glibc's memcpy stops using the string instruction (rep movsb) at the size of a core's
//   cache. The instruction takes 0.82 of memcpy's time for 1 MiB and 0.81 to 0.97 for 2 MiB (EPYC with 1 MiB). Larger
//   blocks can take longer, and so can blocks whose addresses differ in their place in a cache line: those keep memcpy.
using BlockCopy = void (*)(void* to, const void* from, std::size_t bytes);

inline constexpr std::size_t min_block_copy = 1024;
inline constexpr std::size_t max_block_copy = 16384;
inline constexpr std::size_t min_string_copy = 1 << 20;
inline constexpr std::size_t max_string_copy = 2 << 20;

// Returns whether a BlockCopy accepts this size.
constexpr bool suits_block_copy(std::size_t bytes) {
    return bytes - min_block_copy <= max_block_copy - min_block_copy ||
           bytes - min_string_copy <= max_string_copy - min_string_copy;
}

// Returns the fastest copy for this CPU; memcpy if there is nothing better.
BlockCopy choose_block_copy();
// Copies min_string_copy bytes or more the fastest way. Any thread.
void copy_large(void* to, const void* from, std::size_t bytes);

struct alignas(64) FastMap {
    std::uintptr_t heap = 0;       // first byte of the own slice
    std::uint64_t heap_bytes = 0;  // of a slice
    std::byte* peers = nullptr;    // slice of PE `first_pe`
    std::uint64_t stride = 0;      // distance between the slices of mapped PEs
    std::uint32_t first_pe = 0;    // mapped PEs are first_pe, first_pe + 1, ...
    std::uint32_t mapped_pes = 0;
    std::uint32_t all_mapped = 0;  // 1: all PEs are mapped
    BlockCopy copy = nullptr;      // set when any PE is mapped
    // The host's number of sleepers (HostMemory::sleepers); set when any PE is mapped.
    const std::atomic<std::uint32_t>* sleepers = nullptr;

    alignas(64) std::uintptr_t statics = 0;  // first byte of the executable's variables
    std::uint64_t statics_bytes = 0;         // 0: not symmetric on all PEs
    std::uint64_t statics_offset = 0;        // in a slice

    // Returns the address of `object` on `pe`, or null when the slow path must decide.
    [[nodiscard]] void* address(const void* object, int pe) const {
        const auto here = reinterpret_cast<std::uintptr_t>(object);
        const std::uint32_t index = static_cast<std::uint32_t>(pe) - first_pe;
        if (here - heap < heap_bytes && index < mapped_pes) [[likely]]
            return at(index, here - heap);
        if (here - statics < statics_bytes && index < mapped_pes) return at(index, statics_offset + (here - statics));
        return nullptr;
    }

    // The same for an object of `bytes`, which must be entirely in the heap or in the variables. Null also for 0 bytes.
    [[nodiscard]] void* address(const void* object, std::uint64_t bytes, int pe) const {
        const auto here = reinterpret_cast<std::uintptr_t>(object);
        const std::uint32_t index = static_cast<std::uint32_t>(pe) - first_pe;
        if (bytes - 1 < heap_bytes && here - heap <= heap_bytes - bytes && index < mapped_pes) [[likely]]
            return at(index, here - heap);
        if (bytes - 1 < statics_bytes && here - statics <= statics_bytes - bytes && index < mapped_pes)
            return at(index, statics_offset + (here - statics));
        return nullptr;
    }

    // Returns whether a writer must look for sleepers in the target's slice. Relaxed: see AwaitedBytes.
    [[nodiscard]] bool has_sleepers() const { return sleepers->load(std::memory_order_relaxed) != 0; }

    // Returns body(address, slice of the PE) of an object of `bytes`, or otherwise(), where address() is null. The code
    // of `body` is expanded twice, so that the path of the heap has no jump.
    template <class Body, class Otherwise>
    [[gnu::always_inline]] auto access(const void* object, std::uint64_t bytes, int pe, Body&& body,
                                       Otherwise&& otherwise) const {
        const auto here = reinterpret_cast<std::uintptr_t>(object);
        const std::uint32_t index = static_cast<std::uint32_t>(pe) - first_pe;
        if (bytes - 1 < heap_bytes && here - heap <= heap_bytes - bytes && index < mapped_pes) [[likely]] {
            std::byte* const slice = static_cast<std::byte*>(at(index, 0));
            return body(slice + (here - heap), slice);
        }
        if (bytes - 1 < statics_bytes && here - statics <= statics_bytes - bytes && index < mapped_pes) {
            std::byte* const slice = static_cast<std::byte*>(at(index, 0));
            return body(slice + statics_offset + (here - statics), slice);
        }
        return otherwise();
    }

    // Returns the slice of a PE for which address() found an address.
    [[nodiscard]] std::byte* slice(int pe) const {
        return static_cast<std::byte*>(at(static_cast<std::uint32_t>(pe) - first_pe, 0));
    }

    // Returns the address of byte `offset` of a slice of the PE `index` after the first mapped one.
    [[nodiscard]] void* at(std::uint32_t index, std::uint64_t offset) const {
        std::byte* const found = peers + index * stride + offset;
        // Spares callers a null check of the result.
        if (found == nullptr) __builtin_unreachable();
        return found;
    }
};

static_assert(offsetof(FastMap, statics) == 64 && sizeof(FastMap) == 128);

}  // namespace npushmem
