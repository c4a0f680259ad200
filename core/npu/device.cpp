#include "npushmem/npu/device.hpp"

#include <utility>

#include "core/npu/executor.hpp"
#include "core/npu/own_waiting.hpp"

namespace npushmem::npu {

Result<std::unique_ptr<Device>> Device::create(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& waiting) {
    if (Status status = config.validate(); !status.ok()) return status;
    return std::unique_ptr<Device>(new Device(config, fabric, waiting, nullptr));
}

Result<std::unique_ptr<Device>> Device::create(const DeviceConfig& config, const Fabric& fabric) {
    if (Status status = config.validate(); !status.ok()) return status;
    auto own = std::make_unique<detail::OwnWaiting>(fabric.n_pes());
    WaitPolicy& waiting = *own;
    return std::unique_ptr<Device>(new Device(config, fabric, waiting, std::move(own)));
}

Device::Device(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& waiting, std::unique_ptr<WaitPolicy> own)
    : own_waiting_(std::move(own)),
      executor_(std::make_shared<detail::Executor>(config, fabric, waiting)),
      default_stream_(std::make_unique<Stream>(*this)) {}

Device::~Device() { executor_->stop(); }

const DeviceConfig& Device::config() const { return executor_->config(); }

const Fabric& Device::fabric() const { return executor_->fabric(); }

Stream& Device::default_stream() { return *default_stream_; }

Status Device::synchronize() { return executor_->synchronize_all(); }

}  // namespace npushmem::npu
