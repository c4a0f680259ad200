// The memory in which the kernel checkers of all PEs of a host record what kernels do, and how each PE finds it.
#pragma once

#include <functional>
#include <memory>

#include "core/base/shared_segment.hpp"
#include "core/memory/control_block.hpp"
#include "core/npu/check/job_records.hpp"

namespace npushmem {

// Made by PE 0 before the start's last barrier. A failure leaves every process to check for itself.
class KernelRecordsMemory {
public:
    // Null: there is no memory for it.
    static std::unique_ptr<KernelRecordsMemory> make(ControlBlock& own);

private:
    explicit KernelRecordsMemory(SharedSegment memory) : memory_(std::move(memory)) {}

    SharedSegment memory_;
};

// Of one PE, which maps every PE.
class KernelRecordsLink final : public npu::check::JobLink {
public:
    using ControlBlockLookup = std::function<ControlBlock&(int pe)>;

    // Null: this PE cannot use the records, which the others learn.
    static std::unique_ptr<KernelRecordsLink> attach(int my_pe, int npes, ControlBlockLookup control_of);

    [[nodiscard]] npu::check::JobRecords& records() const override { return *records_; }
    [[nodiscard]] bool complete() const override;
    [[nodiscard]] std::uint64_t host_barrier() const override;
    [[nodiscard]] bool host_called(int pe, std::uint64_t host_barrier) const override;

private:
    KernelRecordsLink(int my_pe, int npes, ControlBlockLookup control_of, SharedSegment memory,
                      std::shared_ptr<npu::check::JobRecords> records)
        : my_pe_(my_pe),
          npes_(npes),
          control_of_(std::move(control_of)),
          memory_(std::move(memory)),
          records_(std::move(records)) {}

    int my_pe_;
    int npes_;
    ControlBlockLookup control_of_;
    SharedSegment memory_;
    std::shared_ptr<npu::check::JobRecords> records_;
};

// Before this PE's host orders something by other means than a host barrier.
void note_host_call(ControlBlock& own);
// From now on it may at any time.
void note_host_access(ControlBlock& own);

}  // namespace npushmem
