// What the fast path of every operation needs: in one cache line the own heap, and where the mapped peers' copies are;
// in a second one, which is looked at for what is not in the heap, the executable's variables. All zero outside
// init..finalize, so that one comparison serves "initialised", "PE in range", "PE mapped" and "symmetric".
#pragma once

#include <cstddef>
#include <cstdint>

namespace npushmem {

// Copies of some kilobytes, between what is too short to gain and what memory limits. memcpy's way there costs as much
// again as our own checks, so that a put of 1 KiB would be a sixth slower than memcpy alone.

// As std::memcpy, for min_block_copy <= bytes <= max_block_copy.
using BlockCopy = void (*)(void* to, const void* from, std::size_t bytes);

inline constexpr std::size_t min_block_copy = 1024;
inline constexpr std::size_t max_block_copy = 16384;

// Is this a number of bytes for a BlockCopy?
constexpr bool suits_block_copy(std::size_t bytes) { return bytes - min_block_copy <= max_block_copy - min_block_copy; }

// The best that this CPU has; memcpy itself where we have nothing better.
BlockCopy choose_block_copy();

struct alignas(64) FastMap {
    std::uintptr_t heap = 0;       // first byte of the own slice
    std::uint64_t heap_bytes = 0;  // of a slice
    std::byte* peers = nullptr;    // slice of PE `first_pe`
    std::uint64_t stride = 0;      // from a mapped PE's slice to the next one's
    std::uint32_t first_pe = 0;    // mapped PEs are first_pe, first_pe + 1, ...
    std::uint32_t mapped_pes = 0;
    std::uint32_t all_mapped = 0;  // 1: no PE is reached in another way
    BlockCopy copy = nullptr;      // whenever any PE is mapped

    alignas(64) std::uintptr_t statics = 0;  // first byte of the executable's variables
    std::uint64_t statics_bytes = 0;         // 0: they are not symmetric, or not at all PEs
    std::uint64_t statics_offset = 0;        // in a slice

    // The address of `object` on `pe`, or null when the slow path must look at it.
    [[nodiscard]] void* address(const void* object, int pe) const {
        const auto here = reinterpret_cast<std::uintptr_t>(object);
        const std::uint32_t index = static_cast<std::uint32_t>(pe) - first_pe;
        if (here - heap < heap_bytes && index < mapped_pes) [[likely]]
            return at(index, here - heap);
        if (here - statics < statics_bytes && index < mapped_pes) return at(index, statics_offset + (here - statics));
        return nullptr;
    }

    // As address, for an object of `bytes`, which must lie whole in the heap or among the variables. Null also for 0
    // bytes.
    [[nodiscard]] void* address(const void* object, std::uint64_t bytes, int pe) const {
        const auto here = reinterpret_cast<std::uintptr_t>(object);
        const std::uint32_t index = static_cast<std::uint32_t>(pe) - first_pe;
        if (bytes - 1 < heap_bytes && here - heap <= heap_bytes - bytes && index < mapped_pes) [[likely]]
            return at(index, here - heap);
        if (bytes - 1 < statics_bytes && here - statics <= statics_bytes - bytes && index < mapped_pes)
            return at(index, statics_offset + (here - statics));
        return nullptr;
    }

    // Where byte `offset` of a slice is, of the PE `index` after the first mapped one.
    [[nodiscard]] void* at(std::uint32_t index, std::uint64_t offset) const {
        std::byte* const found = peers + index * stride + offset;
        // Spares every caller the question whether what was found is null as well.
        if (found == nullptr) __builtin_unreachable();
        return found;
    }
};

static_assert(offsetof(FastMap, statics) == 64 && sizeof(FastMap) == 128);

}  // namespace npushmem
