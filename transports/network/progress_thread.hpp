// Drives a transport while the program computes. Sleeps on the wire's descriptor; keeps out of the way while the
// program drives the transport itself, and often.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

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
