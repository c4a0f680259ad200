// What a core asks the proxy to do.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem::proxy {

// A core as the proxy knows it: what became of its requests.
//
// Shared by the core and by its requests under way: a core that stops waiting leaves this one to them and takes
// another, so that what comes late is told to nobody. A core waits for one request at a time.

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

struct Request {
    enum class Kind : unsigned char { put, get, put_signal, atomic, fence, quiet };
    // A source of at most so many bytes travels with the request, and may be changed as soon as that was handed over.
    static constexpr std::size_t max_inline_bytes = 64;

    [[nodiscard]] int pe() const { return kind == Kind::atomic ? atomic.pe : transfer.data.pe; }
    // Not for larger ones.
    void copy_inline(const void* source) {
        if (transfer.data.bytes > 0) std::memcpy(inline_data.data(), source, transfer.data.bytes);
        has_inline_data = true;
    }

    Kind kind = Kind::quiet;
    bool has_inline_data = false;  // the source is `inline_data`
    std::uint64_t number = 0;      // the requester's, who waits for the answer; 0: nobody waits
    std::shared_ptr<RequesterState> requester;
    npushmem_put_signal transfer{};  // put, get (its `data` only), put_signal; the remote regions are filled in later
    npushmem_atomic atomic{};        // no `result`: that comes with the answer
    std::array<std::byte, max_inline_bytes> inline_data{};
};

// A quiet that a core waits for, while some PEs have not completed what was asked of them before.

struct QuietRequest {
    std::shared_ptr<RequesterState> requester;
    std::uint64_t number = 0;  // the requester's
    int open = 0;              // PEs that are still to complete
    Status first;              // failure of those that have
};

// The way of requests from the cores to the proxy: a ring of fixed slots, filled by any thread and emptied by one.
//
// Each slot has a sequence number: `position` of the request that may be written into it, that plus 1 when it has
// been, and the position of the next round when it has been taken. What was pushed before by the same thread, or by
// another that this one has heard from, is taken before.

class RequestRing {
public:
    // `slots`: a power of two.
    explicit RequestRing(std::uint64_t slots) : mask_(slots - 1), slots_(std::make_unique<Slot[]>(slots)) {
        // Before any other thread knows of the ring.
        for (std::uint64_t i = 0; i < slots; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
    }
    RequestRing(const RequestRing&) = delete;
    RequestRing& operator=(const RequestRing&) = delete;
    ~RequestRing() = default;

    // Any thread. False: there is no room, `request` is as it was.
    bool try_push(Request& request) {
        // A guess: the exchange below corrects it.
        std::uint64_t position = claimed_.load(std::memory_order_relaxed);
        for (;;) {
            Slot& slot = slots_[position & mask_];
            // Pairs with the release of try_pop: the slot's former request has been taken out.
            const auto ahead = static_cast<std::int64_t>(slot.sequence.load(std::memory_order_acquire) - position);
            if (ahead < 0) return false;
            if (ahead > 0) {
                position = claimed_.load(std::memory_order_relaxed);
                continue;
            }
            // Sequentially consistent for the sake of sleepers: see all_taken().
            if (!claimed_.compare_exchange_weak(position, position + 1, std::memory_order_seq_cst,
                                                std::memory_order_relaxed))
                continue;
            slot.request = std::move(request);
            slot.sequence.store(position + 1, std::memory_order_release);  // pairs with the acquire of try_pop
            return true;
        }
    }

    // The one that empties it. False: there is none, or it is still being written.
    bool try_pop(Request& out) {
        Slot& slot = slots_[taken_ & mask_];
        // Pairs with the release of try_push: the request is whole.
        if (slot.sequence.load(std::memory_order_acquire) != taken_ + 1) return false;
        out = std::move(slot.request);
        slot.sequence.store(taken_ + mask_ + 1, std::memory_order_release);  // pairs with the acquire of try_push
        ++taken_;
        return true;
    }

    // The one that empties it, between the announcement of its sleep and the sleep. Pairs with the exchange of
    // try_push: of a push and an announcement one comes first and is seen by the other side.
    [[nodiscard]] bool all_taken() const { return claimed_.load(std::memory_order_seq_cst) == taken_; }

private:
    struct Slot {
        std::atomic<std::uint64_t> sequence{0};
        Request request;
    };

    const std::uint64_t mask_;
    std::unique_ptr<Slot[]> slots_;
    alignas(64) std::atomic<std::uint64_t> claimed_{0};  // how often a slot was claimed; by any thread
    alignas(64) std::uint64_t taken_ = 0;                // by the one that empties it
};

}  // namespace npushmem::proxy
