// SPDX-License-Identifier: BSD-3-Clause
// A combine in mode stream: rows go through a ring to each rank, expert after expert. The receiver puts them into their
// slots as they arrive and adds them up when all have arrived. In mode chunked this happens for one chunk of the
// receiver's tokens after another, in the same slots.
#pragma once

#include <cstdint>

#include "core/moe/direct/combine_receiver.hpp"
#include "core/moe/direct/combine_sender.hpp"
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
    // Tokens of a chunk, on every rank; 0: all tokens in one chunk.
    Tokens chunk;
    std::uint64_t chunks = 1;
};

// Kernel, for at least two cores: half of them send while the other half receive. It does not deadlock: in step i the
// sender of p and the receiver of p + 1 + i are partners, so among all waiting ends one with the smallest step has a
// partner that does not wait. Steps of later chunks count as later steps; the barrier of a PE's cores between chunks
// does not wait for other PEs. Throws KernelError with the ring's error message.
void moe_combine_stream(npu::Core& core, const StreamCombine& work);

// The two parts of the kernel, for a host that serves some of the ranks during the first: exchange the rows of a chunk,
// and add them up.
void moe_combine_exchange(npu::Core& core, const StreamCombine& work, std::uint64_t chunk);
void moe_combine_reduce(npu::Core& core, const StreamCombine& work, std::uint64_t chunk);

// Kernel: signals this rank's abort at both ends of all its rings. Needs rings and send.host_served only.
void moe_stream_signal_abort(npu::Core& core, const StreamCombine& work);

}  // namespace npushmem::moe
