// The emulated NPU in fast mode beside the same algorithms in plain C++, and what a core's turn costs.
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/cases/case.hpp"
#include "bench/cases/raw_line.hpp"
#include "bench/cases/variants.hpp"
#include "npushmem.h"
#include "npushmem/npu/npu.hpp"

namespace npushmem::bench {
namespace {

constexpr std::size_t row = 4096;
constexpr std::size_t rows = 64;
// In the arena, in lines: the barrier's state, and behind it the words of the bare one.
constexpr std::size_t state_bytes = sizeof(npu::BarrierState);

// The batch as one launch: what a launch costs is spread over its iterations.
template <class Kernel>
Batch launched(int blocks, Kernel kernel) {
    return [blocks, kernel](std::uint64_t iterations) {
        npu::Stream& stream = npu::device().default_stream();
        Status done = npu::launch(stream, blocks, [kernel, iterations](npu::Core& core) { kernel(core, iterations); });
        if (done.ok()) done = stream.synchronize();
        if (!done.ok()) throw std::runtime_error(done.message());
    };
}

struct Rows {
    std::byte* from;
    std::byte* to;
};

void copy_in_kernel(npu::Core& core, const Rows& memory, std::uint64_t iterations) {
    if (core.index() != 0) return;
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
    const Rows memory{arena.own + state_bytes, arena.own + state_bytes + rows * row};
    Point point{.name = "copy loop, rows of 4 KiB", .bytes = row};
    point.variants.push_back(
        {"npushmem",
         launched(1, [memory](npu::Core& core, std::uint64_t iterations) { copy_in_kernel(core, memory, iterations); }),
         false});
    const std::shared_ptr<std::byte> buffer(new std::byte[row], std::default_delete<std::byte[]>());
    point.variants.push_back(baseline("plain C++", [memory, tile = buffer.get()](std::uint64_t i) {
        const std::size_t at = i % rows * row;
        std::memcpy(tile, memory.from + at, row);
        keep_memory();
        std::memcpy(memory.to + at, tile, row);
    }));
    point.memory.push_back(buffer);
    return point;
}

// Write local, read remote, as barrier v3 does with one core.
Variant plain_v3(const Arena& arena) {
    std::byte* const own = arena.own + state_bytes;
    std::vector<std::byte*> others;
    for (int i = 1; i < arena.pes; ++i)
        others.push_back(static_cast<std::byte*>(npushmem_ptr(own, (arena.pe + i) % arena.pes)));
    return {"plain C++",
            [own, others = std::move(others), polls = raw_polls(arena.pes),
             count = std::uint64_t{0}](std::uint64_t iterations) mutable {
                for (const std::uint64_t end = count + iterations; count < end;) {
                    raw_set(own, ++count);
                    for (std::byte* other : others) raw_wait(other, count, polls);
                }
            },
            true};
}

Point barrier(const Arena& arena) {
    auto* state = arena.own_as<npu::BarrierState>();
    Point point{.name = "barrier v3", .shared = true};
    point.variants.push_back({"npushmem",
                              launched(1,
                                       [state](npu::Core& core, std::uint64_t iterations) {
                                           const npu::TeamView world{0, 1, core.n_pes()};
                                           for (std::uint64_t i = 0; i < iterations; ++i)
                                               npu::sync_v3(core, world, state);
                                       }),
                              false});
    if (arena.all_mapped) point.variants.push_back(plain_v3(arena));
    point.variants.push_back(baseline("host barrier", [](std::uint64_t) { npushmem_sync_all(); }));
    return point;
}

// Two contexts of the C library that go back and forth.
struct Swapping {
    ucontext_t mine{};
    ucontext_t other{};
    std::array<std::byte, 64 * 1024> stack{};
};

void swap_back(unsigned high, unsigned low) {
    auto* pair = reinterpret_cast<Swapping*>(static_cast<std::uintptr_t>(high) << 32 | low);
    for (;;) swapcontext(&pair->other, &pair->mine);
}

Point turns() {
    Point point{.name = "a core's turn", .parts = 2};
    point.variants.push_back({"npushmem",
                              launched(1,
                                       [](npu::Core& core, std::uint64_t iterations) {
                                           if (core.index() < 2)
                                               for (std::uint64_t i = 0; i < iterations; ++i) core.yield();
                                       }),
                              false});
    const auto pair = std::make_shared<Swapping>();
    getcontext(&pair->other);
    pair->other.uc_stack.ss_sp = pair->stack.data();
    pair->other.uc_stack.ss_size = pair->stack.size();
    const auto address = reinterpret_cast<std::uintptr_t>(pair.get());
    makecontext(&pair->other, reinterpret_cast<void (*)()>(&swap_back), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    point.variants.push_back(
        baseline("swapcontext", [pair = pair.get()](std::uint64_t) { swapcontext(&pair->mine, &pair->other); }));
    point.memory.push_back(pair);
    return point;
}

std::vector<Point> points(const Arena& arena) {
    std::vector<Point> all{copy_loop(arena)};
    if (npu::device().config().vector_cores >= 2) all.push_back(turns());
    if (arena.pes > 1) all.push_back(barrier(arena));
    return all;
}

}  // namespace

Case npu_case() { return {"npu", state_bytes + 2 * rows * row, points}; }

}  // namespace npushmem::bench
