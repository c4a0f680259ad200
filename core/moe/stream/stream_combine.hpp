// A combine in mode stream: rows go through a ring to each rank, expert after expert, are put into their slots in the
// order in which they come, and are added up when all are there. In mode chunked this is done chunk by chunk of the
// receivers' tokens, in the same slots.
#pragma once

#include <cstdint>

#include "core/moe/combine_receiver.hpp"
#include "core/moe/combine_sender.hpp"
#include "core/moe/ring/core_ring.hpp"

namespace npushmem::moe {

struct StreamCombine {
    CombineSend send;  // ranks that the host serves: it serves both rings (remote_stream.hpp), and each chunk has
                       // launches of its own
    CombineReceive receive;
    RingMemory rings;
    // This rank's RowOrder.
    const std::uint32_t* slots = nullptr;
    const std::uint64_t* first = nullptr;
    // Tokens of a chunk, on every rank; 0: all in one.
    Tokens chunk;
    std::uint64_t chunks = 1;
};

// Kernel, for two cores and more: half of them send while the other half receive. All PEs take their peers in such an
// order that the sender of p in its step i and the receiver of p + 1 + i in its step i are each other's partners; of
// all who wait, one whose step is the smallest has a partner that does not wait, so somebody always goes on. A chunk
// after another makes steps that come later still; the barrier of a PE's cores between them does not wait for other
// PEs. Throws KernelError with the ring's diagnosis.
void moe_combine_stream(npu::Core& core, const StreamCombine& work);

// Its parts, for a host that serves some of the ranks beside the first: rows of a chunk to their slots, and their sums.
void moe_combine_exchange(npu::Core& core, const StreamCombine& work, std::uint64_t chunk);
void moe_combine_reduce(npu::Core& core, const StreamCombine& work, std::uint64_t chunk);

// Kernel: no rank shall wait any more for this one, at either end. Needs rings and send.host_served only.
void moe_stream_signal_abort(npu::Core& core, const StreamCombine& work);

}  // namespace npushmem::moe
