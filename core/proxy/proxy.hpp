// The thread that does for the cores of this PE's emulated NPU what they ask of PEs that are not mapped. It sleeps when
// there is nothing to do.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/proxy/request.hpp"
#include "core/proxy/request_queue.hpp"

namespace npushmem::proxy {

// The proxy's work: takes requests, spreads them over the PEs' queues, and gets on with all of them.

// Used by one thread.
class Worker {
public:
    // `peers` outlives this.
    explicit Worker(RemotePeers& peers) : peers_(peers) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // Closes the queues; what is still outstanding is given up.
    ~Worker() = default;

    // Connects to the PE if needed. A request that cannot be executed fails at its requester.
    void accept(Request request);
    // Lets everything get on. True: something has happened.
    bool advance();
    // Something waits or is under way.
    [[nodiscard]] bool busy() const { return !active_.empty(); }
    // Tells everybody who waits that this is why. Nothing may be asked afterwards.
    void abort(const Status& why);

private:
    Result<RequestQueue*> queue_of(int pe);
    void activate(RequestQueue& queue);
    void accept_fence(const Request& request);
    void accept_quiet(Request& request);
    static void reject(const Request& request, Status why);
    // The answers to quiets that all their PEs have completed.
    bool answer_quiets();
    // The first asynchronous error of the transports that were used.
    Status events();

    RemotePeers& peers_;
    std::map<int, std::unique_ptr<RequestQueue>> queues_;  // by PE
    std::vector<RequestQueue*> active_;                    // those that are not idle
    std::vector<std::shared_ptr<QuietRequest>> quiets_;
    std::uint64_t transports_ = 0;  // of the queues, one bit each
};

class Proxy {
public:
    // Requests that may wait to be taken.
    static constexpr std::uint64_t slots = 1024;

    // Everything referred to outlives this. Code::system: there is no thread to be had.
    static Result<std::unique_ptr<Proxy>> start(RemotePeers& peers, const WaitBudget& budget, WaitOs& os);
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    // Who still waits is told Code::aborted.
    ~Proxy();

    // Any thread. False: there is no room, `request` is as it was.
    bool try_push(Request& request);
    // How often the thread has slept. Any thread.
    [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

private:
    // The waits of one stretch without anything happening.
    struct IdleState {
        std::uint32_t polls = 0;
        std::chrono::nanoseconds began{0};  // 0: not looked at yet
        std::chrono::nanoseconds next_sleep{0};
    };

    Proxy(RemotePeers& peers, const WaitBudget& budget, WaitOs& os)
        : worker_(peers), budget_(budget), os_(os), ring_(slots) {}
    void run();
    bool take();
    void back_off(IdleState& idle);
    void sleep(IdleState& idle);
    void wake();

    Worker worker_;  // the thread's
    const WaitBudget budget_;
    WaitOs& os_;
    RequestRing ring_;
    alignas(FutexCounter::bytes) std::array<std::byte, FutexCounter::bytes> futex_memory_{};  // where the thread sleeps
    FutexCounter line_{futex_memory_.data()};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> sleeps_{0};  // a count, which nothing depends on
    std::thread thread_;                    // last: it uses all the others
};

}  // namespace npushmem::proxy
