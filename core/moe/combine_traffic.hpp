// What a combine's flow control has cost one PE, since creation or reset.
#pragma once

#include <cstdint>

#include "core/moe/ring/core_ring.hpp"

namespace npushmem::moe {

struct CombineTraffic {
    std::uint64_t calls = 0;
    std::uint64_t signals = 0;  // words stored at other PEs and here, mode direct: one per PE and call
    std::uint64_t tails = 0;    // the same of rings: one per batch ...
    std::uint64_t heads = 0;    // ... and one per release
    std::uint64_t splits = 0;   // batches across a ring's end
    std::uint64_t waits = 0;    // for room, or for rows
};

// Of all rings that begin or end here, while no call is under way.
inline CombineTraffic ring_traffic(const RingMemory& rings) {
    CombineTraffic sum;
    for (int rank = 0; rank < rings.layout.ranks(); ++rank) {
        RingSenderState sender;
        RingReceiverState receiver;
        std::memcpy(static_cast<void*>(&sender), rings.word(rings.layout.sender_state(rank)), sizeof sender);
        std::memcpy(static_cast<void*>(&receiver), rings.word(rings.layout.receiver_state(rank)), sizeof receiver);
        sum.tails += sender.traffic.batches;
        sum.splits += sender.traffic.splits;
        sum.heads += receiver.traffic.releases;
        sum.waits += sender.traffic.waits + receiver.traffic.waits;
    }
    return sum;
}

}  // namespace npushmem::moe
