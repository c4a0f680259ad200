#include "npushmem/npu/device.hpp"

#include <utility>

#include "core/npu/executor.hpp"
#include "core/npu/standalone_wait_policy.hpp"

namespace npushmem::npu {

Result<std::unique_ptr<Device>> Device::create(const DeviceConfig& config, const Fabric& fabric,
                                               WaitPolicy& wait_policy) {
    if (Status status = config.validate(); !status.ok()) return status;
    return std::unique_ptr<Device>(new Device(config, fabric, wait_policy, nullptr));
}

Result<std::unique_ptr<Device>> Device::create(const DeviceConfig& config, const Fabric& fabric) {
    if (Status status = config.validate(); !status.ok()) return status;
    auto own = std::make_unique<detail::StandaloneWaitPolicy>(fabric.n_pes());
    WaitPolicy& wait_policy = *own;
    return std::unique_ptr<Device>(new Device(config, fabric, wait_policy, std::move(own)));
}

Device::Device(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy,
               std::unique_ptr<WaitPolicy> own)
    : standalone_wait_policy_(std::move(own)),
      executor_(std::make_shared<detail::Executor>(config, fabric, wait_policy)),
      default_stream_(std::make_unique<Stream>(*this)) {}

Device::~Device() { executor_->stop(); }

const DeviceConfig& Device::config() const { return executor_->config(); }

const Fabric& Device::fabric() const { return executor_->fabric(); }

Stream& Device::default_stream() { return *default_stream_; }

Status Device::synchronize() { return executor_->synchronize_all(); }

}  // namespace npushmem::npu
