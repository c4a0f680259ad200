// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cases/baselines.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace npushmem::bench {

std::string block_name(const char* operation, std::size_t bytes) {
    return bytes < MiB ? fmt::format("{} {} KiB", operation, bytes / KiB)
                       : fmt::format("{} {} MiB", operation, bytes / MiB);
}

std::byte* private_block(Point& point, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    void* block = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (block == nullptr) throw std::bad_alloc();
    point.memory.emplace_back(block, &std::free);
    std::memset(block, 1, bytes);
    return static_cast<std::byte*>(block);
}

}  // namespace npushmem::bench
