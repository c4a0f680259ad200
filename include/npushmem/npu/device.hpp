// SPDX-License-Identifier: BSD-3-Clause
// An emulated NPU.
#pragma once

#include <memory>

#include "npushmem/npu/device_config.hpp"
#include "npushmem/npu/export.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/stream.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu {

namespace detail {
class Executor;
}

// Each PE has one device. A program that called npushmem_init uses device(); a test creates its own device over its own
// fabric.
class NPUSHMEM_NPU_EXPORT Device {
public:
    // `fabric` and `wait_policy` must outlive the device. Returns Code::config for sizes out of range. Allocates no
    // threads and no memory before the first launch.
    static Result<std::unique_ptr<Device>> create(const DeviceConfig& config, const Fabric& fabric,
                                                  WaitPolicy& wait_policy);
    // Uses the wait policy of a program without a runtime: a short spin, then yields, then sleeps of up to a
    // millisecond.
    static Result<std::unique_ptr<Device>> create(const DeviceConfig& config, const Fabric& fabric);

    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    // Drops queued launches, ends running kernels at their next wait, and joins the workers. Streams and events of the
    // device stay valid as objects; their calls return Code::state.
    ~Device();

    [[nodiscard]] const DeviceConfig& config() const;
    [[nodiscard]] const Fabric& fabric() const;
    // A stream with the lifetime of the device.
    [[nodiscard]] Stream& default_stream();
    // Waits for all streams. Returns the first failure found.
    Status synchronize();

private:
    friend class Stream;
    Device(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy, std::unique_ptr<WaitPolicy> own);

    std::unique_ptr<WaitPolicy> standalone_wait_policy_;
    std::shared_ptr<detail::Executor> executor_;
    std::unique_ptr<Stream> default_stream_;
};

// The device of this process's PE, created on first use after init. The runtime defines this function. Throws
// KernelError(Code::not_initialized) before init and after finalize.
NPUSHMEM_NPU_EXPORT Device& device();

}  // namespace npushmem::npu
