// The thread that drives a transport, and a descriptor for which it can wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

// A descriptor that is readable when one of several others is, or after wake().
class CombinedDescriptor {
public:
    CombinedDescriptor() = default;  // none
    CombinedDescriptor(CombinedDescriptor&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)),
          waker_(std::exchange(other.waker_, -1)),
          awake_(std::exchange(other.awake_, false)) {}
    CombinedDescriptor& operator=(CombinedDescriptor&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        std::swap(waker_, other.waker_);
        std::swap(awake_, other.awake_);
        return *this;
    }
    ~CombinedDescriptor();
    // The callers keep ownership of `watched` and keep them open.
    static Result<CombinedDescriptor> of(std::span<const int> watched);

    [[nodiscard]] int get() const { return descriptor_; }  // -1: none
    // Makes the descriptor readable until rest(). One thread at a time calls these; another may wait for the
    // descriptor.
    void wake();
    void rest();

private:
    int descriptor_ = -1;
    int waker_ = -1;      // an eventfd, readable while awake
    bool awake_ = false;  // a second wake costs nothing
};

// Drives a transport while the program computes. The thread sleeps on the wire's descriptor, and stays idle while the
// program itself drives the transport often.
class ProgressThread {
public:
    // Drives per millisecond above which the program needs no help. A program that spins drives hundreds of times (a
    // dozen on an emulated processor). One that sleeps between calls drives a few times only, and would notice arrivals
    // late.
    static constexpr std::uint64_t busy_calls = 8;

    // Special results of Work::drive.
    static constexpr int wait_briefly = -1;  // there is no descriptor: call again soon
    static constexpr int continue_now = -2;  // there is more work now

    struct Work {
        // Drives the transport until it is idle. Returns the descriptor that becomes readable when there is more work.
        std::function<int()> drive;
        // The number of drives by other threads.
        std::function<std::uint64_t()> driven_by_others;
        std::function<void()> tick;  // every tick_length
        std::chrono::milliseconds tick_length;
    };

    static Result<std::unique_ptr<ProgressThread>> start(Work work);
    ~ProgressThread();
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

private:
    ProgressThread(Work work, int stop) : work_(std::move(work)), stop_(stop) {}
    void run();
    // False when the thread must stop.
    bool wait(int descriptor, std::chrono::milliseconds longest);

    Work work_;
    int stop_;  // an eventfd, readable when the thread must stop
    std::thread thread_;
};

}  // namespace npushmem::network
