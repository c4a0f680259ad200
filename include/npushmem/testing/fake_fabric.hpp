// SPDX-License-Identifier: BSD-3-Clause
// The network between fake transports of one process: registered memory, and the operations that have not arrived yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::fakes {

class FakeTransport;

// State shared by the PEs' transports. Any thread may call any function but reach_by.
class FakeFabric {
public:
    // When operations take effect: when they are posted; when the test delivers them, in posting order; or at calls of
    // progress, test and quiet, in the most inconvenient ways that transport.h allows. `adversarial` delivers in a
    // pseudo-random order that only fences restrict, delivers large data in pieces from either end, reads some sources
    // when it delivers and others when they are posted, rejects some posts with again, and drops operations of
    // destroyed queues.
    enum class Delivery { at_once, deferred, adversarial };

    // `seed` selects the sequence of `adversarial`.
    explicit FakeFabric(Delivery delivery = Delivery::at_once, std::uint64_t seed = 1)
        : delivery_(delivery), random_(seed) {}

    // Replaces the default, in which every PE reaches every PE by calls. A reach with NPUSHMEM_CAP_MAP permits `map`.
    // Call it before any transport is opened on this fabric.
    void reach_by(std::function<Reach(int from, int to)> reach) { reach_ = std::move(reach); }
    // The next `times` posts fail with again.
    void reject_posts(int times) {
        const std::lock_guard lock(mutex_);
        no_room_ = times;
    }
    // Executes the oldest held operation. Returns false if there is none.
    bool deliver_one() {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) return false;
        while (run_step(0)) {
        }
        return true;
    }
    void deliver_all() {
        while (deliver_one()) {
        }
    }
    [[nodiscard]] std::size_t held() const {
        const std::lock_guard lock(mutex_);
        return held_.size();
    }

private:
    friend class FakeTransport;
    struct Region {
        std::byte* base;
        std::uint64_t bytes;
    };
    using Steps = std::vector<std::function<void()>>;
    struct Held {
        std::uint64_t queue;
        int to;
        std::uint64_t fences;                  // of the queue before this operation
        bool is_update;                        // the fences after it order it
        std::uint64_t token;                   // 0: complete for its caller
        std::array<std::uint64_t, 2> regions;  // that it accesses
        Steps steps;
        std::size_t next_step = 0;  // it has arrived when there is none
    };

    // Runs a step, and reports it to all that want reports: a host does not rely on the reason of one.
    void run(const std::function<void()>& step) {
        step();
        for (const auto& [transport, listener] : listeners_) listener();
    }
    // Runs the next step of the operation. Returns whether it has further ones; removes it if not.
    bool run_step(std::size_t index) {
        Held& held = held_[index];
        run(held.steps[held.next_step++]);
        if (held.next_step < held.steps.size()) return true;
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
        return false;
    }
    // Whether a fence holds the operation back: an update that was posted before that fence is still held.
    [[nodiscard]] bool is_blocked(std::size_t index) const {
        const Held& held = held_[index];
        return std::any_of(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(index), [&](const Held& earlier) {
            return earlier.is_update && earlier.queue == held.queue && earlier.to == held.to &&
                   earlier.fences < held.fences;
        });
    }
    // Runs one step of an operation that matches and that no fence holds back, the next one after a pseudo-random
    // place. Returns false if there is none.
    template <class Match>
    bool run_any_step(Match match) {
        const std::size_t count = held_.size();
        const std::size_t first = count == 0 ? 0 : below(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t index = (first + i) % count;
            if (!match(held_[index]) || is_blocked(index)) continue;
            (void)run_step(index);
            return true;
        }
        return false;
    }
    [[nodiscard]] bool is_adversarial() const { return delivery_ == Delivery::adversarial; }
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    const Delivery delivery_;
    std::function<Reach(int, int)> reach_;
    mutable std::mutex mutex_;  // guards what follows, and the transports' queues and imports
    std::mt19937_64 random_;
    int no_room_ = 0;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, Region> regions_;
    std::map<const FakeTransport*, std::function<void()>> listeners_;  // of arrivals
    std::deque<Held> held_;  // in posting order, which is the delivery order of `deferred`
};

}  // namespace npushmem::fakes
