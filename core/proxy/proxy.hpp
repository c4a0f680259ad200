// The thread that does for the cores of this PE's emulated NPU what they ask of PEs that are not mapped. It sleeps when
// there is nothing to do.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

#include "core/base/futex_counter.hpp"
#include "core/base/wait_budget.hpp"
#include "core/base/wait_os.hpp"
#include "core/proxy/request_ring.hpp"
#include "core/proxy/worker.hpp"

namespace npushmem::proxy {

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
