// SPDX-License-Identifier: BSD-3-Clause
// The thread that drives a transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Drives a transport while the program computes. The thread sleeps on the transport's descriptor, and stays idle while
// the program itself drives the transport often.
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
        // A descriptor that becomes readable when the thread must drive even if others do; -1: there is none.
        int alarm = -1;
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
    bool alarmed_ = false;
    std::thread thread_;
};

}  // namespace npushmem
