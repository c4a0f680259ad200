// A core as the proxy knows it: what became of its requests.
//
// Shared by the core and by its requests under way: a core that stops waiting leaves this one to them and takes
// another, so that what comes late is told to nobody. A core waits for one request at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::proxy {

class RequesterState {
public:
    RequesterState() = default;
    RequesterState(const RequesterState&) = delete;
    RequesterState& operator=(const RequesterState&) = delete;

    // ---- the core's side ----
    // How many of its requests are over.
    [[nodiscard]] std::uint64_t finished() const {
        // Pairs with finish(): a request that is over no longer uses what it was given.
        return finished_.load(std::memory_order_acquire);
    }
    // Whether the answer to the request of this number, 1 or more, is there; then it is in answer() and value().
    [[nodiscard]] bool answered(std::uint64_t number) const {
        // Pairs with the store in report(): answer, value and what was fetched are seen.
        return answered_.load(std::memory_order_acquire) == number;
    }
    [[nodiscard]] Status answer() { return std::move(answer_); }
    [[nodiscard]] std::uint64_t value() const { return value_; }
    // The first failure of a request that nobody waited for, once.
    [[nodiscard]] Status take_failure() {
        // Only a hint, looked at before every request: the lock orders what it hints at.
        if (!failed_.load(std::memory_order_relaxed)) return {};
        const std::lock_guard guard(lock_);
        failed_.store(false, std::memory_order_relaxed);
        return std::exchange(failure_, {});
    }

    // ---- the proxy's side ----
    void report(std::uint64_t number, Status answer, std::uint64_t value) {
        answer_ = std::move(answer);
        value_ = value;
        answered_.store(number, std::memory_order_release);  // pairs with answered()
    }
    void record_failure(Status failure) {
        const std::lock_guard guard(lock_);
        if (failure_.ok()) failure_ = std::move(failure);
        failed_.store(true, std::memory_order_relaxed);  // a hint, see take_failure()
    }
    // One writer: a store is enough. Pairs with finished().
    void finish() { finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

private:
    std::atomic<std::uint64_t> finished_{0};
    std::atomic<std::uint64_t> answered_{0};
    Status answer_;  // written before answered_, read after it
    std::uint64_t value_ = 0;
    std::atomic<bool> failed_{false};
    std::mutex lock_;
    Status failure_;  // under lock_
};

}  // namespace npushmem::proxy
