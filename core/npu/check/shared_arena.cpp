#include "core/npu/check/shared_arena.hpp"

#include <algorithm>
#include <bit>

namespace npushmem::npu::check {

std::size_t SharedArena::class_of(std::size_t bytes) {
    return static_cast<std::size_t>(std::bit_width(std::max(bytes, smallest) - 1) - 4);
}

void* SharedArena::allocate(std::size_t bytes) {
    const std::size_t size = class_of(bytes);
    if (size >= sizes) throw std::bad_alloc();
    if (Free* const block = free_[size]; block != nullptr) {
        free_[size] = block->next;
        return block;
    }
    const std::size_t whole = smallest << size;
    if (whole > static_cast<std::size_t>(end_ - unused_)) throw std::bad_alloc();
    unused_ += whole;
    return unused_ - whole;
}

void SharedArena::release(void* block, std::size_t bytes) {
    Free*& first = free_[class_of(bytes)];
    first = new (block) Free{first};
}

void SharedArena::reset() {
    constexpr std::size_t begin = (sizeof(SharedArena) + 63) / 64 * 64;
    unused_ = reinterpret_cast<std::byte*>(this) + begin;
    free_.fill(nullptr);
}

}  // namespace npushmem::npu::check
