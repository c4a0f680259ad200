// SPDX-License-Identifier: BSD-3-Clause
// The sender of a combine in direct mode: a core takes the rows of a destination from x, puts each into its slot at the
// receiver, and then sets one signal there. Or it offers x instead of putting rows (rows_in_place.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/narrow_rows.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/reduce.hpp"
#include "core/moe/common/slot_layout.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/direct/rows_in_place.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Rows to send that are computed from rows of x: weighted sums (one row per (token, rank)), quantized rows, or both.
struct ComputedRows {
    // Sums, with arrays as in RankRows; `first` null: row i is row i of x.
    const std::uint64_t* first = nullptr;
    const std::uint32_t* parts = nullptr;
    const float* weights = nullptr;
    Reduction sum;                                           // to the element type of x; to float if quantized
    decltype(NarrowFunctions::quantize) quantize = nullptr;  // from the element type of x, or from a sum's floats
    NarrowLayout narrow{1, 0};
    float* floats = nullptr;  // both: [cores, hidden]
    Bytes x_row;              // of x

    [[nodiscard]] bool any() const { return first != nullptr || quantize != nullptr; }
};

// Arguments of the sender. Tables and slots are as in combine_plan.hpp and have been checked. They and x must stay
// unchanged until the launch ends.
struct CombineSend {
    const std::byte* x = nullptr;
    ComputedRows computed;                       // from x; a sender without host_served computes them where they go,
                                                 // but in mode direct and route staged moe_combine_compute_rows does
                                                 // before
    const std::int32_t* offset_table = nullptr;  // [num_local_experts, num_ranks]
    const std::int32_t* length_table = nullptr;  // same
    const std::uint32_t* slots = nullptr;        // [rows to send]
    std::int32_t num_local_experts = 0;
    std::int32_t num_ranks = 0;
    const std::uint8_t* host_served = nullptr;  // [num_ranks] 1: the host sends to it; null: none
    std::byte* region = nullptr;                // this PE's copy of the symmetric receive memory
    std::uint64_t* arrivals = nullptr;  // audit: symmetric [2, slots] counters of rows put into each slot; or null
    SlotLayout layout{1, Rows{0}, Bytes{1}};
    std::uint64_t epoch = 0;
    CopyRoute route = CopyRoute::direct;
    OfferInPlace in_place;  // if x is offered, no row is sent
};

// Fills the fields that follow from the plan and the layout; the caller sets x, region, epoch and the others. The
// result points into the plan.
CombineSend send_from(const CombinePlan& plan, const SlotLayout& layout);

// Computes the rows of a fragment of send.computed, one each `step` bytes from `target` on; none in gaps.
void compute_rows(npu::Core& core, const CombineSend& send, Fragment fragment, std::byte* target, std::size_t step);

// Kernel, for any number of cores: computes `rows` rows of send.computed, contiguously; none in gaps.
void moe_combine_compute_rows(npu::Core& core, const CombineSend& send, std::uint64_t rows, std::byte* target);

// This rank's signal word in the receive memory of `rank`.
std::uint64_t* own_signal(const CombineSend& send, int rank);

// Kernel, for any number of cores: core c of n serves destinations (my_pe + 1 + c + i * n) mod num_ranks, so that PEs
// begin with different destinations. Every destination gets its signal, also one without rows. In route staged, cores
// share destinations when there are more cores than destinations.
void moe_combine_direct_sender(npu::Core& core, const CombineSend& send);

// Kernel: adds the abort bit to this rank's words at every mapped rank. Needs region, layout, num_ranks, host_served
// and in_place.memory only.
void moe_combine_signal_abort(npu::Core& core, const CombineSend& send);

// For ranks whose memory is not mapped here: the host puts rows, and then the signal, to every rank that
// send.host_served marks. The puts are complete after memory.quiet(). Call quiet before this rank waits for others,
// because a transport may hold back puts until then.
void send_remote_rows(SymmetricMemory& memory, const CombineSend& send);

// The same for moe_combine_signal_abort.
void signal_abort_remotely(SymmetricMemory& memory, const CombineSend& send);

}  // namespace npushmem::moe
