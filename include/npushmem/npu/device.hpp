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

// One per PE. A program that was started with npushmem_init uses device(); a test makes its own over a fabric of its
// own.
class NPUSHMEM_NPU_EXPORT Device {
public:
    // `fabric` and `wait_policy` must outlive the device. Code::config for sizes out of range; no threads and no memory
    // are taken before the first launch.
    static Result<std::unique_ptr<Device>> create(const DeviceConfig& config, const Fabric& fabric,
                                                  WaitPolicy& wait_policy);
    // With the wait policy of a program without a runtime: a short spin, then yields, then sleeps of up to a
    // millisecond.
    static Result<std::unique_ptr<Device>> create(const DeviceConfig& config, const Fabric& fabric);

    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    // Gives up what is still queued, ends running kernels at their next wait, and joins the workers. Streams and events
    // of the device stay valid as objects; their calls fail with Code::state.
    ~Device();

    [[nodiscard]] const DeviceConfig& config() const;
    [[nodiscard]] const Fabric& fabric() const;
    // A stream that lives as long as the device.
    [[nodiscard]] Stream& default_stream();
    // Waits for all streams; the first failure found.
    Status synchronize();

private:
    friend class Stream;
    Device(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy, std::unique_ptr<WaitPolicy> own);

    std::unique_ptr<WaitPolicy> standalone_wait_policy_;
    std::shared_ptr<detail::Executor> executor_;
    std::unique_ptr<Stream> default_stream_;
};

// The device of this process's PE, made on first use after init. Defined by the runtime, not by the device. Throws
// KernelError(Code::not_initialized) before init and after finalize.
NPUSHMEM_NPU_EXPORT Device& device();

}  // namespace npushmem::npu
