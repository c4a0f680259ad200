// SPDX-License-Identifier: BSD-3-Clause
// Requests of cores to the proxy.
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

// The results of one core's requests. The core and its requests in flight share it: a core that stops waiting leaves it
// to them and takes a new one, so that late results reach no one. A core waits for one request at a time.
class RequesterState {
public:
    RequesterState() = default;
    RequesterState(const RequesterState&) = delete;
    RequesterState& operator=(const RequesterState&) = delete;

    // ---- for the core ----
    // Returns how many of its requests are complete.
    [[nodiscard]] std::uint64_t finished() const {
        // Partner: finish(). A complete request no longer uses its memory.
        return finished_.load(std::memory_order_acquire);
    }
    // Returns whether the answer to the request of this number (from 1) has arrived; then read answer() and value().
    [[nodiscard]] bool answered(std::uint64_t number) const {
        // Partner: the store in report(). Makes the answer, the value and the fetched data visible.
        return answered_.load(std::memory_order_acquire) == number;
    }
    [[nodiscard]] Status answer() { return std::move(answer_); }
    [[nodiscard]] std::uint64_t value() const { return value_; }
    // Returns, once, the first failure of a request that nobody waited for.
    [[nodiscard]] Status take_failure() {
        // Only a hint, checked before every request; the lock orders the data.
        if (!failed_.load(std::memory_order_relaxed)) return {};
        const std::lock_guard guard(lock_);
        failed_.store(false, std::memory_order_relaxed);
        return std::exchange(failure_, {});
    }

    // ---- for the proxy ----
    void report(std::uint64_t number, Status answer, std::uint64_t value) {
        answer_ = std::move(answer);
        value_ = value;
        answered_.store(number, std::memory_order_release);  // Partner: answered()
    }
    void record_failure(Status failure) {
        const std::lock_guard guard(lock_);
        if (failure_.ok()) failure_ = std::move(failure);
        failed_.store(true, std::memory_order_relaxed);  // a hint, see take_failure()
    }
    // One writer, so a store suffices. Partner: finished().
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
    // A source of at most this size travels with the request; its memory may be reused when the request is in the ring.
    static constexpr std::size_t max_inline_bytes = 64;

    [[nodiscard]] int pe() const { return kind == Kind::atomic ? atomic.pe : transfer.data.pe; }
    // In messages.
    [[nodiscard]] const char* name() const {
        switch (kind) {
            case Kind::put: return "a put";
            case Kind::get: return "a get";
            case Kind::put_signal: return "a put with signal";
            case Kind::atomic: return "an atomic";
            case Kind::fence: return "a fence";
            case Kind::quiet: return "quiet";
        }
        return "";
    }
    // Only for sources of at most max_inline_bytes.
    void copy_inline(const void* source) {
        if (transfer.data.bytes > 0) std::memcpy(inline_data.data(), source, transfer.data.bytes);
        has_inline_data = true;
    }

    Kind kind = Kind::quiet;
    bool has_inline_data = false;  // the source is `inline_data`
    std::uint64_t number = 0;      // the requester's number of a request with an answer; 0: nobody waits
    std::shared_ptr<RequesterState> requester;
    npushmem_put_signal transfer{};  // put, get (only `data`), put_signal; the queue fills in the remote regions
    npushmem_atomic atomic{};        // without `result`, which is in the answer
    std::array<std::byte, max_inline_bytes> inline_data{};
};

// A quiet of a core, until all PEs have completed the core's earlier requests.
struct QuietRequest {
    std::shared_ptr<RequesterState> requester;
    std::uint64_t number = 0;  // the requester's number of this request
    int open = 0;              // incomplete PEs
    Status first;              // the first failure
};

// The queue of requests from the cores to the proxy: a ring of fixed slots, which any thread fills and one thread
// empties.
//
// Each slot has a sequence number: `position` when the request of that position may be written, `position` + 1 when it
// has been written, and the position of the next round when it has been taken. Requests of one thread are taken in
// order, and after the requests of other threads that happened before them.
class RequestRing {
public:
    // `slots`: a power of two.
    explicit RequestRing(std::uint64_t slots) : mask_(slots - 1), slots_(std::make_unique<Slot[]>(slots)) {
        // No other thread knows the ring yet.
        for (std::uint64_t i = 0; i < slots; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
    }
    RequestRing(const RequestRing&) = delete;
    RequestRing& operator=(const RequestRing&) = delete;
    ~RequestRing() = default;

    // Any thread. False: the ring is full, and `request` is unchanged.
    bool try_push(Request& request) {
        // A guess, which the exchange below corrects.
        std::uint64_t position = claimed_.load(std::memory_order_relaxed);
        for (;;) {
            Slot& slot = slots_[position & mask_];
            // Partner: the release in try_pop. The slot's former request has been taken.
            const auto ahead = static_cast<std::int64_t>(slot.sequence.load(std::memory_order_acquire) - position);
            if (ahead < 0) return false;
            if (ahead > 0) {
                position = claimed_.load(std::memory_order_relaxed);
                continue;
            }
            // Sequentially consistent because of sleepers, see all_taken().
            if (!claimed_.compare_exchange_weak(position, position + 1, std::memory_order_seq_cst,
                                                std::memory_order_relaxed))
                continue;
            slot.request = std::move(request);
            slot.sequence.store(position + 1, std::memory_order_release);  // Partner: the acquire in try_pop
            return true;
        }
    }

    // Consumer only. False: the ring is empty, or the next request is still being written.
    bool try_pop(Request& out) {
        Slot& slot = slots_[taken_ & mask_];
        // Partner: the release in try_push. The request is complete.
        if (slot.sequence.load(std::memory_order_acquire) != taken_ + 1) return false;
        out = std::move(slot.request);
        slot.sequence.store(taken_ + mask_ + 1, std::memory_order_release);  // Partner: the acquire in try_push
        ++taken_;
        return true;
    }

    // Consumer only, between the announcement of its sleep and the sleep. Partner: the exchange in try_push. Of a push
    // and an announcement, the later side sees the earlier one.
    [[nodiscard]] bool all_taken() const { return claimed_.load(std::memory_order_seq_cst) == taken_; }

private:
    struct Slot {
        std::atomic<std::uint64_t> sequence{0};
        Request request;
    };

    const std::uint64_t mask_;
    std::unique_ptr<Slot[]> slots_;
    alignas(64) std::atomic<std::uint64_t> claimed_{0};  // number of claims; written by any thread
    alignas(64) std::uint64_t taken_ = 0;                // written by the consumer
};

}  // namespace npushmem::proxy
