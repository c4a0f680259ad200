// One descriptor that is readable when any of several is, or when somebody wakes whoever waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

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
    // `watched` stay their owners', and open as long as this is used.
    static Result<CombinedDescriptor> of(std::span<const int> watched);

    [[nodiscard]] int get() const { return descriptor_; }  // -1: none
    // Readable from here on, until there is rest. By one thread at a time; another may be waiting for the descriptor.
    void wake();
    void rest();

private:
    int descriptor_ = -1;
    int waker_ = -1;      // an eventfd, readable while awake
    bool awake_ = false;  // so that to wake again costs nothing
};

// Drives a transport while the program computes. Sleeps on the wire's descriptor; keeps out of the way while the
// program drives the transport itself, and often.
class ProgressThread {
public:
    // Who drives it so often in a millisecond waits without sleeping, and needs no help: that is hundreds of times, a
    // dozen in an emulated processor. Who sleeps while it waits does a few times at most, and then what arrives would
    // lie there until it wakes.
    static constexpr std::uint64_t busy_calls = 8;

    // In place of a descriptor.
    static constexpr int wait_briefly = -1;  // there is none to wait for: call again in a while
    static constexpr int continue_now = -2;  // there is more to do already

    struct Work {
        // Lets things happen until nothing more does. The descriptor that becomes readable when there is more to do.
        std::function<int()> drive;
        // How often others have driven it.
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
    // False: it is time to end.
    bool wait(int descriptor, std::chrono::milliseconds longest);

    Work work_;
    int stop_;  // an eventfd, readable when it is time to end
    std::thread thread_;
};

}  // namespace npushmem::network
