// SPDX-License-Identifier: BSD-3-Clause
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

// Launches of one stream run one after the other, in order. Launches of different streams run in any order or
// concurrently. Any thread may call all functions, but not from inside a kernel.
class NPUSHMEM_NPU_EXPORT Stream {
public:
    // A stream without a device, like one that was moved from: launches return Code::state.
    Stream() = default;
    explicit Stream(Device& device);
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    // Waits for queued launches like close(), but discards their failure.
    ~Stream();

    // Waits until all entries queued so far have ended. Returns the first failure since the last synchronize: its code,
    // with kernel, PE, core and cause in the message. Launches queued after a failed one do not run. After the failure
    // is returned, the stream accepts launches again. May run the kernels on the calling thread.
    Status synchronize();
    // Like synchronize(), but returns Code::timeout after `timeout`; the launches continue. Never runs kernels on the
    // calling thread, so it returns in time even if a kernel never waits.
    Status synchronize(std::chrono::nanoseconds timeout);
    // Code::ok when all entries have succeeded; Code::again when some have not ended; otherwise the code of the
    // failure, which stays for synchronize.
    [[nodiscard]] Code query() const;
    // Entries queued after this call wait until the work recorded by `event` has ended. A never-recorded event counts
    // as ended.
    Status wait(const Event& event);
    [[nodiscard]] bool has_device() const { return state_ != nullptr; }
    // Whether its device is this one.
    [[nodiscard]] bool belongs_to(const Device& device) const;
    // The device's barrier choice.
    [[nodiscard]] BarrierChoice barrier_choice() const;
    // Calls synchronize() and closes the stream: later launches return Code::state.
    Status close();

private:
    friend class Event;
    friend Status detail::enqueue(Stream& stream, const LaunchConfig& config, std::unique_ptr<detail::KernelBody> body);

    std::shared_ptr<detail::StreamState> state_;
};

// A point in a stream. Copies refer to the same point.
class NPUSHMEM_NPU_EXPORT Event {
public:
    // Records all entries queued in `stream` so far. Replaces the earlier record.
    Status record(const Stream& stream);
    // Whether the recorded entries have ended, successfully or not. True for a never-recorded event.
    [[nodiscard]] bool query() const;
    // Waits for the recorded entries. Returns the stream's failure, which stays for the stream's own synchronize.
    Status synchronize() const;

private:
    friend class Stream;

    std::shared_ptr<detail::StreamState> stream_;
    std::uint64_t sequence_ = 0;
};

}  // namespace npushmem::npu
