// What a PE provides to its kernels: the emulated NPU, which the first user creates, and the notes with which the
// kernel checker follows the host's calls.
#pragma once

#include <memory>
#include <mutex>

#include "core/runtime/kernel_records.hpp"
#include "core/runtime/npu_binding.hpp"

namespace npushmem {

class NpuServices {
public:
    explicit NpuServices(const NpuResources& resources)
        : resources_(resources),
          checks_kernels_(resources.settings.npu_check),
          control_(resources.slices.heap().control()) {}
    NpuServices(const NpuServices&) = delete;
    NpuServices& operator=(const NpuServices&) = delete;

    // Returns this PE's emulated NPU, which the first call creates. Any thread.
    Result<npu::Device*> device();
    // Completes the kernels that are still queued, then destroys the NPU. No other thread uses it any more.
    void close();

    // Tells the kernel checker that this PE's host is about to order accesses by other means than a barrier of all PEs.
    void note_host_call() {
        if (checks_kernels_) npushmem::note_host_call(control_);
    }
    // Tells the kernel checker that the host gets the address of another PE's memory, through which it may order
    // accesses at any time.
    void note_host_access() {
        if (checks_kernels_) npushmem::note_host_access(control_);
    }

private:
    NpuResources resources_;
    bool checks_kernels_;
    ControlBlock& control_;  // the own one
    std::mutex lock_;
    std::unique_ptr<NpuBinding> binding_;  // under lock_
};

}  // namespace npushmem
