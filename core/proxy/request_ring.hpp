// The way of requests from the cores to the proxy: a ring of fixed slots, filled by any thread and emptied by one.
//
// Each slot has a sequence number: `position` of the request that may be written into it, that plus 1 when it has
// been, and the position of the next round when it has been taken. What was pushed before by the same thread, or by
// another that this one has heard from, is taken before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/proxy/request.hpp"

namespace npushmem::proxy {

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
