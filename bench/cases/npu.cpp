// SPDX-License-Identifier: BSD-3-Clause
// The emulated NPU in fast mode beside the same loop in plain C++, and the cost of a switch between cores.
#include <ucontext.h>

#include <array>
#include <cstring>
#include <memory>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "bench/cases/npu_batch.hpp"

namespace npushmem::bench {
namespace {

constexpr std::size_t row = 4096;
constexpr std::size_t rows = 64;

struct Rows {
    std::byte* from;
    std::byte* to;
};

void copy_in_kernel(npu::Core& core, const Rows& memory, std::uint64_t iterations) {
    const auto tile = core.ub_alloc<std::byte>(row);
    for (std::uint64_t i = 0; i < iterations; ++i) {
        const std::size_t at = i % rows * row;
        core.data_copy(tile, npu::gm(memory.from + at, row), row);
        core.set_flag<npu::Pipe::copy_in, npu::Pipe::copy_out>(0);
        core.wait_flag<npu::Pipe::copy_in, npu::Pipe::copy_out>(0);
        core.data_copy(npu::gm(memory.to + at, row), tile, row);
        core.set_flag<npu::Pipe::copy_out, npu::Pipe::copy_in>(0);
        core.wait_flag<npu::Pipe::copy_out, npu::Pipe::copy_in>(0);
    }
}

Point copy_loop(const Arena& arena) {
    const Rows memory{arena.own, arena.own + rows * row};
    Point point{.name = "copy loop, rows of 4 KiB", .bytes = row};
    point.variants.push_back(
        {"npushmem",
         launched(device_of(1),
                  [memory](npu::Core& core, std::uint64_t iterations) { copy_in_kernel(core, memory, iterations); }),
         false});
    const std::shared_ptr<std::byte> buffer(new std::byte[row], std::default_delete<std::byte[]>());
    point.variants.push_back(baseline("plain C++", [memory, tile = buffer.get()](std::uint64_t i) {
        const std::size_t at = i % rows * row;
        std::memcpy(tile, memory.from + at, row);
        clobber_memory();
        std::memcpy(memory.to + at, tile, row);
    }));
    point.memory.push_back(buffer);
    return point;
}

// Two contexts of the C library that switch back and forth.
struct ContextPair {
    ucontext_t mine{};
    ucontext_t other{};
    std::array<std::byte, 64 * 1024> stack{};
};

void swap_back(unsigned high, unsigned low) {
    auto* pair = reinterpret_cast<ContextPair*>(static_cast<std::uintptr_t>(high) << 32 | low);
    for (;;) swapcontext(&pair->other, &pair->mine);
}

// Each barrier of two cores is one switch: the first core yields, and the second continues until the next barrier. (Two
// cores that only yield would count as polling, and the time would be that of the pauses between polls.)
Point core_switches() {
    Point point{.name = "a core switch"};
    point.variants.push_back({"npushmem",
                              launched(device_of(2),
                                       [](npu::Core& core, std::uint64_t iterations) {
                                           for (std::uint64_t i = 0; i < iterations; ++i) core.core_barrier();
                                       }),
                              false});
    const auto pair = std::make_shared<ContextPair>();
    getcontext(&pair->other);
    pair->other.uc_stack.ss_sp = pair->stack.data();
    pair->other.uc_stack.ss_size = pair->stack.size();
    const auto address = reinterpret_cast<std::uintptr_t>(pair.get());
    makecontext(&pair->other, reinterpret_cast<void (*)()>(&swap_back), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    // Every second iteration switches there and back.
    point.variants.push_back(baseline("swapcontext", [pair = pair.get()](std::uint64_t i) {
        if (i % 2 == 0) swapcontext(&pair->mine, &pair->other);
    }));
    point.memory.push_back(pair);
    return point;
}

std::vector<Point> points(const Arena& arena) { return {copy_loop(arena), core_switches()}; }

}  // namespace

Case npu_case() { return {"npu", 2 * rows * row, points}; }

}  // namespace npushmem::bench
