// The seed's sender: plan 2 gathers while it copies, plan 1 reorders first and is what plan 2 is compared with.
#pragma once

#include <cstdint>

#include "core/moe/pack/pack_arguments.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Kernels, for any number of cores: core c of n serves the ranks (my_pe + 1 + c + i * n) mod num_ranks. Throw
// KernelError naming expert, rank and value before they would write beyond a region.
void pack_rows(npu::Core& core, const PackArguments& pack);

// All rows are first brought into the order of ranks in `ordered`, and then copied to the buffer: one more trip of
// every byte through memory.
void reorder_rows(npu::Core& core, const PackArguments& pack);

// pack_rows with the seed's parameters: rows of hidden_size elements of bfloat16, regions of max_send_len rows.
void moe_combine_sender(npu::Core& core, const std::byte* x, std::byte* tx_buffer, const std::int32_t* offset_table,
                        const std::int32_t* length_table, std::int32_t num_local_experts, std::int32_t num_ranks,
                        std::int32_t hidden_size, std::int32_t max_send_len);

}  // namespace npushmem::moe
