// SPDX-License-Identifier: BSD-3-Clause
// The DMA engines of an NPU. Each engine executes its own queue in order and counts its completed transfers. Engines do
// not wait for each other: operations on different engines take effect in any order, unless a fence of their transport
// queue separates them.
//
// Any thread may call. One lock guards the engines; it is not held while a transfer executes. The caller of run()
// executes the transfers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "transports/shared/posted_operation.hpp"

namespace npushmem::hccs {

using Nanoseconds = std::chrono::nanoseconds;

class Engines {
public:
    // The start of a transfer: it fails with `code`, or executes at time `due`.
    struct Start {
        Code code = Code::ok;
        Nanoseconds due{0};
    };
    struct Work {
        std::function<Nanoseconds()> now;
        // `begin` and `wake_at` are called under the lock. `begin` is called once per transfer, when its engine reaches
        // it.
        std::function<Start(const PostedOperation&, Nanoseconds now)> begin;
        // Requests a call of run() at this time.
        std::function<void(Nanoseconds)> wake_at;
        // Executes the transfer. Called by any thread, without the lock.
        std::function<Code(const PostedOperation&, std::uint64_t queue)> carry_out;
    };

    // `depth`: capacity of one engine, in transfers.
    Engines(std::size_t engines, std::size_t depth, Work work);

    void open_queue(std::uint64_t queue);
    // Drops the outstanding transfers. No transfer of this queue executes any more when the call returns.
    Code close_queue(std::uint64_t queue);

    // Appends the operation to the engine whose turn it is. Code::again: that engine is full.
    Code post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token);
    // Later transfers of this queue wait for all its earlier ones.
    Code fence(std::uint64_t queue);
    // Code::again while a transfer is outstanding. Reports each failure once.
    Code quiet(std::uint64_t queue);
    Code test(std::uint64_t queue, std::uint64_t token);

    // Executes the transfers that are due, and requests a wake-up for later ones. True when it executed one.
    bool run();
    // The requested wake-up has happened. Call this before run().
    void woken();

private:
    using Lock = std::unique_lock<std::mutex>;
    using Counts = std::vector<std::uint64_t>;  // one per engine
    static constexpr Nanoseconds never = Nanoseconds::max();

    struct Transfer {
        PostedOperation operation;
        std::uint64_t queue;
        std::shared_ptr<const Counts> after;  // required completion count of each engine; null: no requirement
        bool begun = false;
        Start start;
    };
    struct Engine {
        std::deque<Transfer> transfers;
        std::uint64_t completed = 0;  // in total; the first of `transfers` has number completed + 1
        bool busy = false;            // a thread executes the first transfer

        [[nodiscard]] std::uint64_t posted() const { return completed + transfers.size(); }
    };
    struct Queue {
        std::size_t next = 0;  // engine
        Counts last;           // number of the last transfer to each engine
        std::shared_ptr<const Counts> fence;
        std::map<std::uint64_t, Code> failed;  // by token, until reported
    };

    bool step(std::size_t index);
    [[nodiscard]] bool may_begin(const Transfer& transfer) const;
    // When the engine's first transfer may execute; `never` when it must wait for other transfers.
    Nanoseconds due(Engine& engine);
    void finish(Lock& lock, std::size_t index, Code code);
    void request_wake(Nanoseconds when);
    [[nodiscard]] std::uint64_t token_of(std::size_t engine, std::uint64_t number) const {
        return number * engines_.size() + engine;  // numbers start at 1, so no token is 0
    }
    Queue* find(std::uint64_t queue);

    const std::size_t depth_;
    const Work work_;
    std::mutex lock_;
    std::condition_variable idle_;  // notified when a transfer has executed
    std::vector<Engine> engines_;
    std::map<std::uint64_t, Queue> queues_;
    Nanoseconds wake_at_ = never;  // the last requested wake-up
};

}  // namespace npushmem::hccs
