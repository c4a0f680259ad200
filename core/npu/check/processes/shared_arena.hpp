// SPDX-License-Identifier: BSD-3-Clause
// The memory that the kernel checkers of all PEs of a job share. It lies at the same address in every process, so that
// objects in it may hold pointers.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

namespace npushmem::npu::check {

// Address of the memory: above the addresses at which Linux places position-independent programs and their heaps, below
// libraries and stacks, and inside the range that the thread sanitizer leaves to programs (0x5500'0000'0000 to
// 0x5680'0000'0000): it ends a process that maps anything elsewhere.
inline constexpr std::uintptr_t shared_arena_address = 0x567f'0000'0000;

// Used by one process at a time.
class SharedArena {
public:
    // The memory begins with this object, ends at `end`, and has pages up to `committed`, the beginning of a page.
    SharedArena(std::byte* committed, std::byte* end) : committed_(committed), end_(end) { reset(); }
    SharedArena(const SharedArena&) = delete;
    SharedArena& operator=(const SharedArena&) = delete;

    // Throws std::bad_alloc when the memory is used up.
    [[nodiscard]] void* allocate(std::size_t bytes);
    void release(void* block, std::size_t bytes);
    // Releases everything.
    void reset();

    // The arena gets its pages in these portions: most jobs need one.
    static constexpr std::size_t unit = std::size_t{1} << 20;

private:
    struct Free {
        Free* next;
    };
    // Blocks have sizes that are powers of two.
    static constexpr std::size_t smallest = 16;
    static constexpr std::size_t sizes = 40;
    [[nodiscard]] static std::size_t class_of(std::size_t bytes);
    // Makes sure that there are pages up to `to`. Throws std::bad_alloc when the machine has none.
    void commit(const std::byte* to);

    std::byte* committed_;
    std::byte* end_;
    std::byte* unused_ = nullptr;
    std::array<Free*, sizes> free_{};
};

inline std::size_t SharedArena::class_of(std::size_t bytes) {
    return static_cast<std::size_t>(std::bit_width(std::max(bytes, smallest) - 1) - 4);
}

inline void* SharedArena::allocate(std::size_t bytes) {
    const std::size_t size = class_of(bytes);
    if (size >= sizes) throw std::bad_alloc();
    if (Free* const block = free_[size]; block != nullptr) {
        free_[size] = block->next;
        return block;
    }
    const std::size_t whole = smallest << size;
    if (whole > static_cast<std::size_t>(end_ - unused_)) throw std::bad_alloc();
    if (unused_ + whole > committed_) commit(unused_ + whole);
    unused_ += whole;
    return unused_ - whole;
}

// Kernels before Linux 5.14 do not know the request: then the pages come with the first access to them.
inline void SharedArena::commit(const std::byte* to) {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE
    const auto missing = static_cast<std::size_t>(to - committed_);
    const std::size_t wanted = (missing + unit - 1) / unit * unit;
    const std::size_t bytes = std::min(wanted, static_cast<std::size_t>(end_ - committed_));
    if (madvise(committed_, bytes, populate_write) != 0 && errno != EINVAL) throw std::bad_alloc();
    committed_ += bytes;
}

inline void SharedArena::release(void* block, std::size_t bytes) {
    Free*& first = free_[class_of(bytes)];
    first = new (block) Free{first};
}

inline void SharedArena::reset() {
    constexpr std::size_t begin = (sizeof(SharedArena) + 63) / 64 * 64;
    unused_ = reinterpret_cast<std::byte*>(this) + begin;
    free_.fill(nullptr);
}

// The arena at shared_arena_address.
inline SharedArena& shared_arena() { return *reinterpret_cast<SharedArena*>(shared_arena_address); }

// Allocates from shared_arena().
template <class T>
struct SharedAllocator {
    using value_type = T;

    SharedAllocator() = default;
    template <class U>
    explicit(false) SharedAllocator(const SharedAllocator<U>& /*other*/) {}

    // NOLINTBEGIN(bugprone-sizeof-expression): T may be a pointer
    [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(shared_arena().allocate(count * sizeof(T))); }
    void deallocate(T* block, std::size_t count) { shared_arena().release(block, count * sizeof(T)); }
    // NOLINTEND(bugprone-sizeof-expression)
    bool operator==(const SharedAllocator& /*other*/) const { return true; }
};

}  // namespace npushmem::npu::check
