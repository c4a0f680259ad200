// SPDX-License-Identifier: BSD-3-Clause
// The other PEs of a collective heap, for PEs that are threads of the test; the barrier is a std::barrier.
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/memory/collective_heap.hpp"
#include "core/memory/host_memory.hpp"

namespace npushmem {

class ThreadPeers final : public HeapPeers {
public:
    ThreadPeers(HostMemory& memory, std::barrier<>& barrier, int pe, int npes)
        : memory_(memory), barrier_(barrier), pe_(pe), npes_(npes) {}
    // As in jobs of many PEs.
    void use_sums() { sums_.emplace(control_of(0).call_sums, 0, std::vector{npes_}, nullptr); }
    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] PeRange pes() const override { return {0, 1, npes_}; }
    [[nodiscard]] bool heaps_may_differ() const override { return may_differ; }
    Status heap_barrier() override {
        barrier_.arrive_and_wait();
        ++barriers_;
        if (after_barrier) after_barrier(barriers_);
        return {};
    }
    [[nodiscard]] std::uint64_t next_barrier() const override { return barriers_ + 1; }
    Result<HeapRecord> record_of(int pe, unsigned parity) override {
        ++records_read;
        return control_of(pe).heap[parity];
    }
    [[nodiscard]] CallSums* sums() override { return sums_ ? &*sums_ : nullptr; }

    // Called after each barrier, with its number from 1.
    std::function<void(std::uint64_t)> after_barrier;
    bool may_differ = false;
    int records_read = 0;

private:
    ControlBlock& control_of(int pe) { return *reinterpret_cast<ControlBlock*>(memory_.slice(pe)); }

    HostMemory& memory_;
    std::barrier<>& barrier_;
    int pe_;
    int npes_;
    std::uint64_t barriers_ = 0;
    std::optional<CallSums> sums_;
};

}  // namespace npushmem
