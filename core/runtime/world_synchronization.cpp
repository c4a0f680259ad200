#include "core/runtime/world_synchronization.hpp"

#include <cstring>

#include "core/base/parking.hpp"

namespace npushmem {

Status WorldSynchronization::quiet() {
    if (!all_mapped_)
        if (Status done = remote_.quiet(); !done.ok()) return done;
    // Stores to mapped memory must leave this CPU before any later load. Pairs with the same fence of a PE that loads
    // a value stored here and then stores a value that this PE loads.
    full_fence();
    return {};
}

// Stores to mapped memory need no fence here: each signal of the barrier releases what its sender stored or acquired
// before, so every PE that leaves the barrier sees the stores of all.
Status WorldSynchronization::barrier_all(const barrier::Plan& plan) {
    if (!all_mapped_)
        if (Status done = quiet(); !done.ok()) return done;
    return world_.sync(plan);
}

Status WorldSynchronization::barrier_all(std::string_view text) {
    auto choice = world_.choose(text);
    return choice.ok() ? barrier_all(choice.value().plan) : choice.status();
}

Result<HeapRecord> WorldHeapPeers::record_of(int pe, unsigned parity) {
    const std::uint64_t offset = offsetof(ControlBlock, heap) + parity * sizeof(HeapRecord);
    HeapRecord record{};
    if (const void* address = slices_.mapped(pe, offset)) {
        std::memcpy(&record, address, sizeof record);
        return record;
    }
    Status fetched = remote_.get(pe, offset, &record, sizeof record, RemoteAccess::Completion::local);
    return fetched.ok() ? Result<HeapRecord>(record) : Result<HeapRecord>(fetched);
}

}  // namespace npushmem
