// The host's call of the packing sender.
#pragma once

#include "core/moe/pack/pack_arguments.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

enum class PackPlan {
    gather,   // plan 2
    reorder,  // plan 1, the baseline
};

// Refuses, before a byte moves: sizes that are out of range; tables that point outside the `rows` rows of x, overlap,
// or send a rank more than max_send_len, naming expert, rank and value; memory that is missing or overlaps.
Status check_pack(const PackArguments& pack, Rows rows, PackPlan plan);

// check_pack, and then the kernel on `launch.block_dim` blocks at the end of the stream. Returns at once.
Status launch_pack(npu::Stream& stream, const npu::LaunchConfig& launch, const PackArguments& pack, Rows rows,
                   PackPlan plan = PackPlan::gather);

}  // namespace npushmem::moe
