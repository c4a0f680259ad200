// The sender of a combine in direct mode: a core gathers the rows of a destination from x and puts each into its slot
// at the receiver, then raises one signal there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/abort_bit.hpp"
#include "core/moe/combine_plan.hpp"
#include "core/moe/copy_route.hpp"
#include "core/moe/slot_layout.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Tables and slots as in combine_plan.hpp, checked before the launch; all of it, and x, must stay unchanged until the
// launch has ended.
struct CombineSend {
    const std::byte* x = nullptr;
    const std::int32_t* offset_table = nullptr;  // [num_local_experts, num_ranks]
    const std::int32_t* length_table = nullptr;  // same
    const std::uint32_t* slots = nullptr;        // [rows of x]
    std::int32_t num_local_experts = 0;
    std::int32_t num_ranks = 0;
    const std::uint8_t* host_served = nullptr;  // [num_ranks] 1: the host sends to it (remote_rows.hpp); null: none
    std::byte* region = nullptr;                // this PE's copy of the symmetric receive memory
    std::uint64_t* arrivals = nullptr;  // audit: symmetric [2, slots] counters of rows put into each slot; or null
    SlotLayout layout{1, Rows{0}, Bytes{1}};
    std::uint64_t epoch = 0;
    CopyRoute route = CopyRoute::direct;
};

// What the plan and the layout tell; x, region, epoch and the rest are the caller's to add. Points into the plan.
CombineSend send_from(const CombinePlan& plan, const SlotLayout& layout);

// This rank's signal word in the receive memory.
std::uint64_t* own_signal(const CombineSend& send, int rank);

// Kernel, for any number of cores: core c of n serves destinations (my_pe + 1 + c + i * n) mod num_ranks, so that the
// PEs do not all begin with the same one. Every destination gets its signal, also one without rows. In route staged
// several cores share each destination where there are so many.
void moe_combine_direct_sender(npu::Core& core, const CombineSend& send);

// Kernel: tells every rank that this one makes no further call on the handle. Needs region, layout and num_ranks only.
void moe_combine_signal_abort(npu::Core& core, const CombineSend& send);

}  // namespace npushmem::moe
