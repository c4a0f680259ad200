// The DMA engines of an NPU: each works off a queue of its own in order, and counts what it has completed. Engines do
// not wait for each other, so that operations which went to different engines take effect in any order, unless a fence
// of their transport's queue stands between them.
//
// Any thread; one lock, never held while a transfer is carried out. Whoever calls run() lends the engines its time.
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
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "transports/shared/posted_operation.hpp"

namespace npushmem::hccs {

using Nanoseconds = std::chrono::nanoseconds;

class Engines {
public:
    // How a transfer begins: it fails with `code`, or is to be carried out when `due` has come.
    struct Start {
        Code code = Code::ok;
        Nanoseconds due{0};
    };
    struct Work {
        std::function<Nanoseconds()> now;
        // Both under the lock. `begin`: once for each transfer, when its engine gets to it.
        std::function<Start(const PostedOperation&, Nanoseconds now)> begin;
        // Somebody should call run() at this time.
        std::function<void(Nanoseconds)> wake_at;
        // The transfer itself; any thread, not under the lock.
        std::function<Code(const PostedOperation&, std::uint64_t queue)> carry_out;
    };

    // `depth`: transfers that one engine has room for.
    Engines(std::size_t engines, std::size_t depth, Work work);

    void open_queue(std::uint64_t queue);
    // What is outstanding is dropped; no transfer of this queue is under way any more when it returns.
    Code close_queue(std::uint64_t queue);

    // Puts the operation at the end of the next engine in turn. Code::again: that one has no room.
    Code post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token);
    // All of this queue that is posted later waits for all of it that was posted earlier.
    Code fence(std::uint64_t queue);
    // Code::again while something is outstanding; a failure is returned once.
    Code quiet(std::uint64_t queue);
    Code test(std::uint64_t queue, std::uint64_t token);

    // Carries out what can be by now, and asks to be woken for what is due later. True when there was something.
    bool run();
    // What was asked for by wake_at has happened: call before run().
    void woken();

private:
    using Lock = std::unique_lock<std::mutex>;
    using Counts = std::vector<std::uint64_t>;  // one per engine
    static constexpr Nanoseconds never = Nanoseconds::max();

    struct Transfer {
        PostedOperation operation;
        std::uint64_t queue;
        std::shared_ptr<const Counts> after;  // what each engine must have completed before; null: nothing
        bool begun = false;
        Start start;
    };
    struct Engine {
        std::deque<Transfer> transfers;
        std::uint64_t completed = 0;  // ever; the first of `transfers` is number completed + 1
        bool busy = false;            // a thread carries out the first

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
    // When the first transfer of the engine could be carried out; `never` when other things must happen first.
    Nanoseconds due(Engine& engine);
    void finish(Lock& lock, std::size_t index, Code code);
    void request_wake(Nanoseconds when);
    [[nodiscard]] std::uint64_t token_of(std::size_t engine, std::uint64_t number) const {
        return number * engines_.size() + engine;  // numbers begin at 1, so that no token is 0
    }
    Queue* find(std::uint64_t queue);

    const std::size_t depth_;
    const Work work_;
    std::mutex lock_;
    std::condition_variable idle_;  // a transfer was carried out
    std::vector<Engine> engines_;
    std::map<std::uint64_t, Queue> queues_;
    Nanoseconds wake_at_ = never;  // what was asked for last
};

// What wakes the thread that drives the engines: a descriptor that becomes readable when it is told to.
class WakeTimer {
public:
    static Result<WakeTimer> make();
    WakeTimer(WakeTimer&& other) noexcept;
    WakeTimer(const WakeTimer&) = delete;
    WakeTimer& operator=(const WakeTimer&) = delete;
    ~WakeTimer();

    [[nodiscard]] int descriptor() const { return timer_; }
    // On the steady clock; a time that has passed: at once. Replaces what was set before. Any thread.
    void set(std::chrono::nanoseconds time) const;
    // Not readable until the next time that is set.
    void clear() const;

private:
    explicit WakeTimer(int timer) : timer_(timer) {}

    int timer_;
};

}  // namespace npushmem::hccs
