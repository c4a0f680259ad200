#include "core/moe/dispatch/remote_dispatch.hpp"

#include "core/moe/common/rank_agreement.hpp"

namespace npushmem::moe {
namespace {

// Calls visit(rank) for the ranks that the host serves, starting after this one.
template <class Visit>
void for_each_host_served(SymmetricMemory& memory, const DispatchWork& work, const Visit& visit) {
    for (std::int32_t i = 1; i <= work.layout.ranks(); ++i) {
        const std::int32_t rank = (memory.my_pe() + i) % work.layout.ranks();
        if (work.is_host_served(rank)) visit(rank);
    }
}

void put_expert(SymmetricMemory& memory, const DispatchWork& work, std::int32_t expert, int holder) {
    const std::uint64_t begin = work.tables.begins[expert];
    const std::uint64_t count = work.tables.begins[expert + 1] - begin;
    const Bytes row = work.layout.row_bytes();
    if (count == 0) return;
    std::byte* x = work.region + (work.layout.x() + row * work.tables.starts[expert]).value();
    for (std::uint64_t i = 0; i < count; ++i) {
        memory.put(x + row.value() * i, work.row_of(work.tables.order[begin + i]), row, holder);
    }
    auto* slots = reinterpret_cast<std::uint32_t*>(work.region + work.layout.slots().value());
    memory.put(reinterpret_cast<std::byte*>(slots + work.tables.starts[expert]),
               reinterpret_cast<const std::byte*>(work.tables.order + begin),
               bytes_of(Rows{count}, Bytes{sizeof *slots}), holder);
}

}  // namespace

void publish_counts_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    const Bytes record = work.layout.record(work.epoch, memory.my_pe());
    for_each_host_served(memory, work, [&](int rank) {
        memory.put(work.region + record.value(), work.tables.record, work.layout.record_bytes(), rank);
    });
    memory.fence();
    for_each_host_served(memory, work, [&](int rank) {
        memory.signal(work.word(work.layout.counts(memory.my_pe())), work.epoch, rank);
    });
}

void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    for_each_host_served(memory, work, [&](int rank) {
        for (std::int32_t e = work.placement.first_expert(rank); e < work.placement.first_expert(rank + 1); ++e) {
            put_expert(memory, work, e, rank);
        }
    });
    memory.fence();
    for_each_host_served(memory, work, [&](int rank) {
        memory.signal(work.word(work.layout.arrived(memory.my_pe())), work.epoch, rank);
    });
}

void signal_dispatch_abort_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    // Ordered behind the puts of a failed call.
    memory.fence();
    for_each_host_served(memory, work, [&](int rank) {
        memory.add(work.word(work.layout.counts(memory.my_pe())), abort_bit, rank);
        memory.add(work.word(work.layout.arrived(memory.my_pe())), abort_bit, rank);
    });
}

}  // namespace npushmem::moe
