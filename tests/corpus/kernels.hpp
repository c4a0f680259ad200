// SPDX-License-Identifier: BSD-3-Clause
// Kernels with a mistake, and the same kernels without it. A kernel author would write the mistake by accident; the
// checker must find it, and must accept the corrected twin.
//
// A line with the comment "WRONG: <name of the kernel>" is a line that a finding must name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "npushmem/npu/npu.hpp"

namespace npushmem::npu::corpus {

using Word = std::uint64_t;

inline constexpr std::size_t data_words = 1024;
inline constexpr std::size_t signal_lines = 16;
inline constexpr std::size_t barrier_states = 2;
inline constexpr std::size_t words_per_line = cache_line / sizeof(Word);

// A PE's copies of the symmetric memory of a kernel, all zero when it begins.
struct Memory {
    Word* data;
    Word* signals;
    BarrierState* barriers;
    Word* prepared;  // the result of Kernel::prepare

    // Each signal is alone in its line.
    [[nodiscard]] Word* signal(std::size_t number) const { return signals + number * words_per_line; }
    [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data); }
};

// The calls of a PE's host program before it launches the kernel.
class Host {
public:
    Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    virtual ~Host() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    virtual Word* allocate(std::size_t words, const SourceLocation& where = SourceLocation::current()) = 0;
    // Called on all PEs; PE 0's call releases the memory of all.
    virtual void release(Word* memory) = 0;
};

struct Setup {
    int pes = 1;
    int blocks = 1;
    int vector_cores = 1;
};

inline constexpr Setup one_core{};
inline constexpr Setup two_cores{.vector_cores = 2};
inline constexpr Setup four_cores{.blocks = 2, .vector_cores = 2};
inline constexpr Setup two_pes{.pes = 2};
inline constexpr Setup three_pes{.pes = 3};
inline constexpr Setup two_pes_of_two_cores{.pes = 2, .vector_cores = 2};

// For mistakes that only some orders of the cores show: a single run may not find them, exploration must.
inline constexpr std::string_view single_runs = "eager lazy random jobs";
inline constexpr std::string_view drawn_runs = "random jobs";
inline constexpr std::string_view other_runs = "eager random jobs";  // than lazy ones

struct Kernel {
    const char* name;
    Hazard hazard;
    Setup setup;
    void (*run)(Core& core, const Memory& m, bool wrong);
    // The modes that may not find the mistake, as words: "eager", "lazy", "random" for every seed, "explore", and
    // "jobs" for every single schedule in a job, "job:explore" for exploration there.
    std::string_view missed_by{};
    Word* (*prepare)(Host& host, bool wrong) = nullptr;
    int (*blocks)(int pe, bool wrong) = nullptr;  // blocks of the launch of each PE; null: setup.blocks
    std::string_view others{};                    // other hazards that the mistake causes, too, as words: "H8 H13"
    bool any_line = false;                        // a report names one of the marked lines, instead of all
};

std::vector<Kernel> buffer_kernels();
std::vector<Kernel> pipe_kernels();
std::vector<Kernel> flag_kernels();
std::vector<Kernel> cache_kernels();
std::vector<Kernel> line_kernels();
std::vector<Kernel> publication_kernels();
std::vector<Kernel> race_kernels();
std::vector<Kernel> address_kernels();
std::vector<Kernel> wait_kernels();
std::vector<Kernel> barrier_kernels();

// All of them.
const std::vector<Kernel>& kernels();

// Marks a value as used.
inline void use(Word) {}

// `to` waits for the commands that `from` was given so far.
template <Pipe from, Pipe to>
void order(Core& core, int id = 0) {
    core.set_flag<from, to>(id);
    core.wait_flag<from, to>(id);
}

// A tile that holds `value` and may be copied out.
inline ub_view<float> filled_tile(Core& core, std::size_t count, float value) {
    const auto tile = core.ub_alloc<float>(count);
    core.fill(tile, value, count);
    order<Pipe::vector, Pipe::copy_out>(core, 5);
    return tile;
}

}  // namespace npushmem::npu::corpus
