// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/device.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/npu/executor.hpp"
#include "core/npu/source_line.hpp"
#include "core/npu/wait_policies.hpp"
#include "npushmem/npu/device_config.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/npu/stream.hpp"

namespace npushmem::npu {
namespace {

Status out_of_range(const char* what, long long value, const char* rule) {
    return {Code::config, fmt::format("device: {} is {}, must be {}", what, value, rule)};
}

constexpr std::size_t page = 4096;

}  // namespace

Status DeviceConfig::validate() const {
    const auto number = [](std::size_t value) { return static_cast<long long>(value); };
    if (blocks < 1 || blocks > 4096) return out_of_range("blocks", blocks, "1 to 4096");
    if (vector_cores < 1 || vector_cores > 16) return out_of_range("vector_cores", vector_cores, "1 to 16");
    if (ub_bytes == 0 || ub_bytes % page != 0 || ub_bytes > (std::size_t{1} << 30)) {
        return out_of_range("ub_bytes", number(ub_bytes), "a multiple of 4096 from 4096 to 1 GiB");
    }
    if (ub_reserved >= ub_bytes || ub_reserved % 32 != 0) {
        return out_of_range("ub_reserved", number(ub_reserved), "a multiple of 32 below ub_bytes");
    }
    if (workers < 1 || workers > 64) return out_of_range("workers", workers, "1 to 64");
    // A collective on a stream needs three blocks of 8 KiB and the frames of a transport.
    if (stack_bytes < 16 * page || stack_bytes > (std::size_t{1} << 30)) {
        return out_of_range("stack_bytes", number(stack_bytes), "64 KiB to 1 GiB");
    }
    if (wait_timeout.count() < 0)
        return out_of_range("wait_timeout (ns)", wait_timeout.count(), "0 (no timeout) or more");
    if (launch_timeout.count() < 0)
        return out_of_range("launch_timeout (ns)", launch_timeout.count(), "0 (no timeout) or more");
    return rules.validate();
}

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

namespace {

Status no_stream() { return {Code::state, "the Stream object is moved-from and has no device"}; }

}  // namespace

Stream::Stream(Device& device) : state_(std::make_shared<detail::StreamState>(device.executor_)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
    if (this == &other) return *this;
    static_cast<void>(close());
    state_ = std::move(other.state_);
    return *this;
}

Stream::~Stream() { static_cast<void>(close()); }

Status Stream::synchronize() { return state_ ? state_->executor->synchronize(state_) : no_stream(); }

Status Stream::synchronize(std::chrono::nanoseconds timeout) {
    return state_ ? state_->executor->synchronize(state_, timeout) : no_stream();
}

Code Stream::query() const { return state_ ? state_->executor->query(*state_) : Code::state; }

bool Stream::belongs_to(const Device& device) const { return state_ && state_->executor == device.executor_; }

BarrierChoice Stream::barrier_choice() const { return state_ ? state_->executor->config().barrier : BarrierChoice{}; }

Status Stream::close() { return state_ ? state_->executor->close(state_) : Status{}; }

Status Stream::wait(const Event& event) {
    if (!state_) return no_stream();
    if (!event.stream_ || event.query()) return {};
    if (event.stream_->executor != state_->executor) {
        return {Code::argument,
                "a stream cannot wait for an event of another device; call Event::synchronize on the host instead"};
    }
    return state_->executor->enqueue(state_, {nullptr, event.stream_, event.sequence_});
}

Status Event::record(const Stream& stream) {
    if (!stream.state_) return no_stream();
    stream_ = stream.state_;
    sequence_ = stream_->executor->last_queued(*stream_);
    return {};
}

bool Event::query() const { return !stream_ || stream_->executor->ended(*stream_, sequence_); }

Status Event::synchronize() const { return stream_ ? stream_->executor->await(stream_, sequence_) : Status{}; }

Status detail::enqueue(Stream& stream, const LaunchConfig& config, std::unique_ptr<KernelBody> body) {
    if (!stream.state_) return no_stream().within("launch");
    const int max_blocks = stream.state_->executor->config().blocks;
    if (config.block_dim < 1 || config.block_dim > max_blocks) {
        return {Code::range, fmt::format("launch at {}: block_dim {} must be 1 to {} (the device's number of blocks)",
                                         text_of(config.where), config.block_dim, max_blocks)};
    }
    StreamState::Entry entry;
    entry.job = std::make_unique<QueuedLaunch>(QueuedLaunch{config, std::move(body), 0});
    return stream.state_->executor->enqueue(stream.state_, std::move(entry)).within("launch");
}

}  // namespace npushmem::npu
