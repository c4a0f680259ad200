// In-order queues of launches, and events between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "npushmem/npu/barrier_choice.hpp"
#include "npushmem/npu/export.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

class Device;
class Event;
class Stream;
struct LaunchConfig;

namespace detail {
class KernelBody;
class StreamState;
NPUSHMEM_NPU_EXPORT Status enqueue(Stream& stream, const LaunchConfig& config, std::unique_ptr<KernelBody> body);
}  // namespace detail

// Launches of one stream run one after the other, in order; launches of different streams in any order or at once.
// All functions may be called from any thread, but not from inside a kernel.
class NPUSHMEM_NPU_EXPORT Stream {
public:
    explicit Stream(Device& device);
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    // Waits for what is queued, as close() does; an error that nobody asked for is lost.
    ~Stream();

    // Waits until everything queued so far has ended, and returns the first failure since the last synchronize: its
    // code, with kernel, PE, core and cause in the message. Launches queued behind a failed one are not run. After the
    // failure is returned, the stream takes launches again. May run the kernels on the calling thread.
    Status synchronize();
    // The same, waiting no longer than `timeout`; then Code::timeout, and the launches go on. Never runs kernels on the
    // calling thread, so it returns in time even if a kernel never waits.
    Status synchronize(std::chrono::nanoseconds timeout);
    // Code::ok when everything queued has ended well, Code::again when not yet ended; a failure stays for synchronize.
    [[nodiscard]] Code query() const;
    // Everything queued from now on waits until what `event` recorded has ended. An event never recorded has happened.
    Status wait(const Event& event);
    // The device's choice.
    [[nodiscard]] BarrierChoice barrier_choice() const;
    // synchronize(), and then nothing can be launched any more (Code::state).
    Status close();

private:
    friend class Event;
    friend Status detail::enqueue(Stream& stream, const LaunchConfig& config, std::unique_ptr<detail::KernelBody> body);

    std::shared_ptr<detail::StreamState> state_;
};

// A point in a stream. Copies name the same point.
class NPUSHMEM_NPU_EXPORT Event {
public:
    // Everything queued in `stream` until now. Replaces what was recorded before.
    Status record(const Stream& stream);
    // Whether that has ended (well or not). An event never recorded has happened.
    [[nodiscard]] bool query() const;
    // Waits for it; returns the stream's failure without taking it away from the stream's own synchronize.
    Status synchronize() const;

private:
    friend class Stream;

    std::shared_ptr<detail::StreamState> stream_;
    std::uint64_t sequence_ = 0;
};

}  // namespace npushmem::npu
