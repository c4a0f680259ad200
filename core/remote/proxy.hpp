// SPDX-License-Identifier: BSD-3-Clause
// The proxy thread. It executes requests of the cores of this PE's emulated NPU to unmapped PEs. It sleeps when idle.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/remote/request.hpp"
#include "core/remote/request_queue.hpp"

namespace npushmem::proxy {

// Executes requests: distributes them over the PEs' queues and advances all queues. Used by one thread.
class Worker {
public:
    // `peers` outlives this.
    explicit Worker(RemotePeers& peers) : peers_(peers), queues_(peers) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // Closes the queues; cancels outstanding operations.
    ~Worker() = default;

    // Connects to the PE if needed. If a request cannot be executed, reports the failure to its requester.
    void accept(Request request);
    // Advances all queues. True: there was progress.
    bool advance();
    // Returns whether requests are queued or in flight.
    [[nodiscard]] bool busy() const { return !active_.empty(); }
    // Fails all waiting requests with this status. No request may follow.
    void abort(const Status& why);

private:
    void activate(RequestQueue& queue);
    void accept_fence(const Request& request);
    void accept_quiet(Request& request);
    static void reject(const Request& request, Status why);
    // Completes quiets whose PEs are all complete.
    bool answer_quiets();

    RemotePeers& peers_;
    QueueTable<RequestQueue> queues_;
    std::vector<RequestQueue*> active_;  // the queues that are not idle
    std::vector<std::shared_ptr<QuietRequest>> quiets_;
};

class Proxy {
public:
    // Capacity of the ring of requests.
    static constexpr std::uint64_t slots = 1024;

    // All references outlive this. Fails with Code::system when the system has no thread left.
    static Result<std::unique_ptr<Proxy>> start(RemotePeers& peers, const WaitBudget& budget, WaitOs& os);
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    // Waiting requests fail with Code::aborted.
    ~Proxy();

    // Any thread. False: the ring is full, and `request` is unchanged.
    bool try_push(Request& request);
    // Returns how often the thread has slept. Any thread.
    [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

private:
    // The state of an idle period.
    struct IdleState {
        std::uint32_t polls = 0;
        std::chrono::nanoseconds began{0};  // 0: the clock has not been read yet
        std::chrono::nanoseconds next_sleep{0};
    };

    Proxy(RemotePeers& peers, const WaitBudget& budget, WaitOs& os)
        : worker_(peers), budget_(budget), os_(os), ring_(slots) {}
    void run();
    bool take();
    void back_off(IdleState& idle);
    void sleep(IdleState& idle);
    void wake();

    Worker worker_;  // used by the thread only
    const WaitBudget budget_;
    WaitOs& os_;
    RequestRing ring_;
    alignas(FutexCounter::bytes) std::array<std::byte, FutexCounter::bytes> futex_memory_{};  // the thread sleeps here
    FutexCounter line_{futex_memory_.data()};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> sleeps_{0};  // a statistic; nothing depends on it
    std::thread thread_;                    // last: it uses all other members
};

}  // namespace npushmem::proxy
