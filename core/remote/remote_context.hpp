// SPDX-License-Identifier: BSD-3-Clause
// The queues of one context to unmapped PEs: each PE has its own, created when the context first uses it. So a wait
// concerns only this context, and a wait for a PE only that PE. Calls block: they repeat until the transport accepts an
// operation, and wait for completion.
//
// Any thread may call it. One lock protects every call on the queues, because a queue accepts one caller at a time. No
// caller waits while holding it, and each context has a lock of its own.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/remote/remote_queue.hpp"

namespace npushmem {

class RemoteContext {
public:
    // local: return when local memory may be reused. deferred: return at once, quiet completes. unawaited: as local,
    // for a signal of the runtime. Its receiver waits for the effect. It makes no quiet over all PEs wait.
    enum class Completion { local, deferred, unawaited };

    // The wait function of callers that are fibers: waits for `ready()`, or returns why it cannot. `ready()` may change
    // `what.needs`. Null: waits as the peers do.
    using WaitFunction = std::function<Status(const std::function<bool()>& ready, const WaitFor& what)>;

    // `peers` outlives this.
    explicit RemoteContext(RemotePeers& peers) : peers_(peers), queues_(peers) {}
    RemoteContext(const RemoteContext&) = delete;
    RemoteContext& operator=(const RemoteContext&) = delete;
    // Closes the queues; cancels outstanding operations.
    ~RemoteContext() = default;

    // Calls `post_once(queue, token)`, with the lock held, until the transport accepts the operation; with `local`
    // completion also waits for it. The common case, a known PE that accepts at once, takes the lock once.
    template <class Post>
    Status post(int pe, const char* what, Completion completion, const WaitFunction* waiter, Post&& post_once);
    // Posts `count` operations by `post_once(queue, number, token)`, a window of them at a time. Waits for all posted
    // ones, even after a failure.
    template <class Post>
    Status post_each(int pe, const char* what, std::uint64_t count, Post&& post_once);

    // Orders the operations posted to each PE, except to those to which only unawaited ones were posted.
    Status fence(const WaitFunction* waiter);
    // Orders the operations posted to this PE.
    Status fence(int pe, const WaitFunction* waiter);
    // Completes the operations posted to all PEs, except to those to which only unawaited ones were posted.
    Status quiet(const WaitFunction* waiter);
    // Completes the operations posted to all PEs.
    Status complete();
    // Completes the operations posted to these PEs. An unused PE is complete.
    Status quiet(std::span<const int> pes, const WaitFunction* waiter);

private:
    using Queues = std::vector<RemoteQueue*>;

    Result<RemoteQueue*> find_or_open(int pe);
    // With the lock held: the quiet over all PEs waits for the queue.
    void await_in_quiet(RemoteQueue& queue) {
        if (queue.is_awaited()) return;
        queue.set_awaited();
        awaited_.push_back(&queue);
    }
    // The same after `post_once`.
    template <class Post>
    Code post_awaited(RemoteQueue& to, Post&& post_once);
    template <class Step>
    Status repeat(const RemoteQueue& queue, const char* what, const WaitFunction* waiter, Step&& step);
    template <class Ready>
    Status wait(Ready&& ready, const WaitFor& what, const WaitFunction* waiter, WaitFailure* reason = nullptr) const;
    // Waits until the operation is complete or the wait fails.
    Status await(RemoteQueue& queue, const char* what, const WaitFunction* waiter, std::uint64_t token);
    // `first`: an earlier failure.
    Status finish_quiet(Queues pending, Status first, const WaitFunction* waiter);
    void give_up(Queues& pending, int dead, const Status& failure, Status& first) const;
    // With the lock held.
    void poll_quiets(Queues& pending, Status& first);
    Status events();

    RemotePeers& peers_;
    std::mutex lock_;  // for all below
    QueueTable<RemoteQueue> queues_;
    Queues awaited_;  // those with operations since their last successful quiet, other than unawaited ones
};

template <class Ready>
Status RemoteContext::wait(Ready&& ready, const WaitFor& what, const WaitFunction* waiter, WaitFailure* reason) const {
    if (waiter != nullptr) return (*waiter)(std::ref(ready), what);
    WaitFailure failure;
    const Code waited = peers_.waiter().until(ready, what, &failure);
    if (reason != nullptr) *reason = failure;
    return waited == Code::ok ? Status{} : Status{waited, describe(what, failure)};
}

// Calls `step` until it no longer returns again; drives progress between the calls. Holds the lock for each step only,
// so that other threads proceed while this one waits.
template <class Step>
Status RemoteContext::repeat(const RemoteQueue& queue, const char* what, const WaitFunction* waiter, Step&& step) {
    Code code = Code::again;
    Status waited = wait(
        [&] {
            {
                const std::lock_guard guard(lock_);
                code = step();
            }
            if (code == Code::again) peers_.progress_transports();
            return code != Code::again;
        },
        {.what = what, .needs = PeRange::one(queue.pe()), .timeout = peers_.timeout(), .is_stepwise = true}, waiter);
    if (!waited.ok()) return waited.within(fmt::format("transport {}", queue.transport_name()));
    return code == Code::ok ? Status{} : queue.failure_of(what, code);
}

template <class Post>
Code RemoteContext::post_awaited(RemoteQueue& to, Post&& post_once) {
    const Code code = post_once();
    if (to.outstanding()) await_in_quiet(to);
    return code;
}

template <class Post>
Status RemoteContext::post(int pe, const char* what, Completion completion, const WaitFunction* waiter,
                           Post&& post_once) {
    std::uint64_t token = 0;
    std::uint64_t* const wanted = completion == Completion::deferred ? nullptr : &token;
    const auto step = [&](RemoteQueue& to) {
        if (completion == Completion::unawaited) return post_once(to, wanted);
        return post_awaited(to, [&] { return post_once(to, wanted); });
    };
    RemoteQueue* to = nullptr;
    Code code = Code::again;
    {
        const std::lock_guard guard(lock_);
        to = queues_.find(pe);
        if (to != nullptr) code = step(*to);
        if (code == Code::ok && token != 0) code = to->test(token);
    }
    if (code == Code::ok) [[likely]]
        return {};
    if (code != Code::again) return to->failure_of(what, code);
    if (token != 0) return await(*to, what, waiter, token);
    if (to != nullptr) {
        peers_.progress_transports();
    } else {
        const auto found = find_or_open(pe);
        if (!found.ok()) return found.status();
        to = found.value();
    }
    Status posted = repeat(*to, what, waiter, [&] { return code = step(*to); });
    if (code != Code::ok || token == 0) return posted;
    if (posted.ok()) return await(*to, what, waiter, token);
    // Posted, but the wait failed: no caller waits for it.
    const std::lock_guard guard(lock_);
    to->abandon_token();
    return posted;
}

template <class Post>
Status RemoteContext::post_each(int pe, const char* what, std::uint64_t count, Post&& post_once) {
    const auto found = find_or_open(pe);
    if (!found.ok()) return found.status();
    RemoteQueue& to = *found.value();
    std::array<std::uint64_t, 64> tokens{};
    Status done;
    for (std::uint64_t first = 0; first < count && done.ok(); first += tokens.size()) {
        const std::uint64_t many = std::min<std::uint64_t>(count - first, tokens.size());
        std::uint64_t posted = 0;
        for (; posted < many && done.ok(); ++posted) {
            std::uint64_t& token = tokens[posted] = 0;
            done = repeat(to, what, nullptr,
                          [&] { return post_awaited(to, [&] { return post_once(to, first + posted, &token); }); });
        }
        for (std::uint64_t i = 0; i < posted; ++i) {
            if (tokens[i] == 0) continue;
            Status over = await(to, what, nullptr, tokens[i]);
            if (done.ok()) done = std::move(over);
        }
    }
    return done;
}

}  // namespace npushmem
