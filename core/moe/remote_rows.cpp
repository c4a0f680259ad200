#include "core/moe/remote_rows.hpp"

#include "core/moe/combine_plan.hpp"

namespace npushmem::moe {
namespace {

// Calls visit(rank) for the ranks that the host serves, beginning behind this one.
template <class Visit>
void for_each_host_served(SymmetricMemory& memory, const CombineSend& send, const Visit& visit) {
    for (std::int32_t i = 1; i <= send.num_ranks; ++i) {
        const std::int32_t rank = (memory.my_pe() + i) % send.num_ranks;
        if (send.host_served[rank] != 0) visit(rank);
    }
}

void put_row(SymmetricMemory& memory, const CombineSend& send, std::uint64_t row, int rank) {
    const std::uint32_t slot = send.slots[row];
    const Bytes size = send.layout.row_bytes();
    memory.put(send.region + send.layout.slot(send.epoch, slot).value(), send.x + bytes_of(Rows{row}, size).value(),
               size, rank);
    if (send.arrivals == nullptr) return;
    memory.add(send.arrivals + (send.epoch & 1U) * send.layout.slots().value() + slot, 1, rank);
}

void put_rows(SymmetricMemory& memory, const CombineSend& send, int rank) {
    for (std::int32_t expert = 0; expert < send.num_local_experts; ++expert) {
        const auto entry = static_cast<std::size_t>(expert) * static_cast<std::size_t>(send.num_ranks) +
                           static_cast<std::size_t>(rank);
        const auto first = static_cast<std::uint64_t>(send.offset_table[entry]);
        const auto count = static_cast<std::uint64_t>(send.length_table[entry]);
        for (std::uint64_t row = first; row < first + count; ++row) put_row(memory, send, row, rank);
    }
}

}  // namespace

void send_remote_rows(SymmetricMemory& memory, const CombineSend& send) {
    for_each_host_served(memory, send, [&](int rank) { put_rows(memory, send, rank); });
    memory.fence();
    for_each_host_served(memory, send,
                         [&](int rank) { memory.signal(own_signal(send, memory.my_pe()), send.epoch, rank); });
}

void signal_abort_remotely(SymmetricMemory& memory, const CombineSend& send) {
    // Behind what a call that failed under way has sent.
    memory.fence();
    for_each_host_served(memory, send,
                         [&](int rank) { memory.add(own_signal(send, memory.my_pe()), abort_bit, rank); });
}

}  // namespace npushmem::moe
