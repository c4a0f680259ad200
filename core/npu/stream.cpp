#include "npushmem/npu/stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/npu/executor.hpp"
#include "core/npu/source_line.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu {
namespace {

Status no_stream() { return {Code::state, "the stream was moved from: it has no device"}; }

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

BarrierChoice Stream::barrier_choice() const { return state_ ? state_->executor->config().barrier : BarrierChoice{}; }

Status Stream::close() { return state_ ? state_->executor->close(state_) : Status{}; }

Status Stream::wait(const Event& event) {
    if (!state_) return no_stream();
    if (!event.stream_ || event.query()) return {};
    if (event.stream_->executor != state_->executor) {
        return {Code::argument,
                "a stream cannot wait for an event of another device; synchronize with the event instead"};
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
        return {Code::range, fmt::format("launch at {}: block_dim {} must be 1 to {}, the blocks of the device",
                                         text_of(config.where), config.block_dim, max_blocks)};
    }
    StreamState::Entry entry;
    entry.job = std::make_unique<QueuedLaunch>(QueuedLaunch{config, std::move(body)});
    return stream.state_->executor->enqueue(stream.state_, std::move(entry)).within("launch");
}

}  // namespace npushmem::npu
