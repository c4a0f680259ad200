// SPDX-License-Identifier: BSD-3-Clause
// The packing sender of the reference kernel: it gathers rows of x, which are ordered by expert, into one contiguous
// region per destination rank. Plan 2 gathers while it copies; plan 1, the baseline, reorders first.
//
//   x:          | expert 0: rank 0 rows, rank 1 rows, ... | expert 1: rank 0 rows, ... | ...
//   tx_buffer:  | rank 0: rows of expert 0, of expert 1, ... | to 32 bytes | rank 1: ... | ...
//
// A region holds max_send_len rows; the kernel writes nothing behind the last row of a destination.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/element.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// All of it must stay unchanged until the launch ends.
struct PackArguments {
    const std::byte* x = nullptr;
    std::byte* tx_buffer = nullptr;
    FragmentTables tables;
    Bytes row;                        // of any length
    Rows max_send_len;                // capacity of one rank's region
    std::byte* ordered = nullptr;     // plan 1 only: as large as tx_buffer
    std::uint64_t* packed = nullptr;  // or null: one line of packed_line words per rank; its first word becomes
    std::uint64_t call = 0;           // `call` when the rank's region is complete
    CopyRoute route = CopyRoute::staged;

    static constexpr std::size_t packed_line = 16;

    [[nodiscard]] constexpr Bytes region_bytes() const { return aligned_up(bytes_of(max_send_len, row), 32); }
    [[nodiscard]] constexpr Bytes region(std::int32_t rank) const {
        return region_bytes() * static_cast<std::uint64_t>(rank);
    }
    [[nodiscard]] constexpr Bytes tx_bytes() const { return region(tables.num_ranks); }
};

// Kernels, for any number of cores: core c of n serves the ranks (my_pe + 1 + c + i * n) mod num_ranks. Instead of
// writing beyond a region they throw KernelError with expert, rank and value.
void pack_rows(npu::Core& core, const PackArguments& pack);

// Plan 1: first copies all rows in the order of ranks to `ordered`, and then to tx_buffer. Every byte passes through
// memory once more.
void reorder_rows(npu::Core& core, const PackArguments& pack);

// pack_rows with the parameters of the reference kernel: rows of hidden_size bfloat16 elements, regions of max_send_len
// rows.
void moe_combine_sender(npu::Core& core, const std::byte* x, std::byte* tx_buffer, const std::int32_t* offset_table,
                        const std::int32_t* length_table, std::int32_t num_local_experts, std::int32_t num_ranks,
                        std::int32_t hidden_size, std::int32_t max_send_len);

enum class PackPlan {
    gather,   // plan 2
    reorder,  // plan 1, the baseline
};

// Rejects, before any byte moves: sizes out of range; tables that point outside the `rows` rows of x, overlap, or send
// a rank more than max_send_len, with expert, rank and value in the message; and null or overlapping memory.
Status check_pack(const PackArguments& pack, Rows rows, PackPlan plan);

// Does check_pack, and then launches the kernel on `launch.block_dim` blocks. Does not wait for it.
Status launch_pack(npu::Stream& stream, const npu::LaunchConfig& launch, const PackArguments& pack, Rows rows,
                   PackPlan plan = PackPlan::gather);

}  // namespace npushmem::moe
