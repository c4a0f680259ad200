// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/remote_context.hpp"

#include <fmt/ranges.h>

#include <utility>

namespace npushmem {

namespace {

// Keeps the first failure in `first`. A dead PE that the program knows of is complete.
Code poll_quiet(RemoteQueue& queue, const RemotePeers& peers, Status& first) {
    const Code code = queue.quiet();
    if (code == Code::ok || code == Code::again) return code;
    if (ends_a_peer(code) && peers.is_acknowledged(queue.pe())) return Code::ok;
    if (first.ok()) first = queue.failure_of("quiet", code);
    return code;
}

Status not_complete(std::span<RemoteQueue* const> pending, const Status& waited) {
    std::vector<int> open;
    for (const RemoteQueue* queue : pending) open.push_back(queue->pe());
    return Status{waited.code(), fmt::format("{}; not complete: PE {}", waited.message(), fmt::join(open, ", "))}
        .within(fmt::format("transport {}", pending[0]->transport_name()));
}

}  // namespace

Result<RemoteQueue*> RemoteContext::find_or_open(int pe) {
    const std::lock_guard guard(lock_);
    return queues_.find_or_open(pe);
}

Status RemoteContext::await(RemoteQueue& queue, const char* what, const WaitFunction* waiter, std::uint64_t token) {
    Code code = Code::again;
    Status done = repeat(queue, what, waiter, [&] { return code = queue.test(token); });
    if (code != Code::again) return done;
    const std::lock_guard guard(lock_);
    queue.abandon_token();
    return done;
}

// Returns the first asynchronous error of the transports that this context has used.
Status RemoteContext::events() {
    std::uint64_t used = 0;
    {
        const std::lock_guard guard(lock_);
        used = queues_.transports();
    }
    return peers_.events_of(used);
}

Status RemoteContext::fence(const WaitFunction* waiter) {
    Queues posted;
    {
        const std::lock_guard guard(lock_);
        posted = awaited_;
    }
    Status first;
    for (RemoteQueue* queue : posted) {
        Status done = repeat(*queue, "a fence", waiter, [queue] { return queue->fence(); });
        if (first.ok() && !peers_.is_acknowledged(queue->pe())) first = std::move(done);
    }
    Status event = events();
    return first.ok() ? event : first;
}

Status RemoteContext::fence(int pe, const WaitFunction* waiter) {
    RemoteQueue* queue = nullptr;
    {
        const std::lock_guard guard(lock_);
        queue = queues_.find(pe);
        if (queue == nullptr || !queue->outstanding()) return {};
    }
    return repeat(*queue, "a fence", waiter, [queue] { return queue->fence(); });
}

Status RemoteContext::quiet(const WaitFunction* waiter) {
    Queues pending;
    Status first;
    {
        const std::lock_guard guard(lock_);
        std::erase_if(awaited_, [&](RemoteQueue* queue) {
            const Code code = poll_quiet(*queue, peers_, first);
            if (code == Code::again) pending.push_back(queue);
            return code == Code::ok;
        });
    }
    return finish_quiet(std::move(pending), std::move(first), waiter);
}

Status RemoteContext::complete() {
    {
        const std::lock_guard guard(lock_);
        for (RemoteQueue& queue : queues_)
            if (queue.outstanding()) await_in_quiet(queue);
    }
    return quiet(nullptr);
}

Status RemoteContext::quiet(std::span<const int> pes, const WaitFunction* waiter) {
    Queues chosen;
    {
        const std::lock_guard guard(lock_);
        for (const int pe : pes) {
            RemoteQueue* const used = queues_.find(pe);
            if (used != nullptr && used->outstanding()) chosen.push_back(used);
        }
    }
    return finish_quiet(std::move(chosen), {}, waiter);
}

// Removes the PEs that will not complete from `pending`: `dead`, and those whose death the program knows. Only the
// death that it does not know is a failure.
void RemoteContext::give_up(Queues& pending, int dead, const Status& failure, Status& first) const {
    std::erase_if(pending, [&](const RemoteQueue* queue) {
        const bool is_known = peers_.is_acknowledged(queue->pe());
        if (queue->pe() == dead && !is_known && first.ok()) first = failure;
        return queue->pe() == dead || is_known;
    });
}

// Polls all PEs together, so that many PEs take no longer than the slowest. A PE is complete once its queue has been:
// operations that other threads post meanwhile do not count. In a job that continues without its dead, the death of one
// PE does not end the wait for the others.
Status RemoteContext::finish_quiet(Queues pending, Status first, const WaitFunction* waiter) {
    std::vector<int> pes;
    WaitFor what{.what = "quiet", .timeout = peers_.timeout(), .is_stepwise = true};
    const auto need_pending = [&] {
        pes.clear();
        for (const RemoteQueue* queue : pending) pes.push_back(queue->pe());
        what.needs = {.count = static_cast<int>(pes.size()), .table = pes.data()};
    };
    need_pending();
    const auto completed = [&] {
        {
            const std::lock_guard guard(lock_);
            poll_quiets(pending, first);
        }
        if (pending.size() != pes.size()) need_pending();  // a PE that is complete may end
        if (!pending.empty()) peers_.progress_transports();
        return pending.empty();
    };
    while (!pending.empty()) {
        const std::size_t before = pending.size();
        WaitFailure reason;
        const Status waited = wait(completed, what, waiter, &reason);
        if (waited.ok()) break;
        const Status failure = pending.empty() ? waited : not_complete(pending, waited);
        if (peers_.survives_deaths() && waited.code() == Code::peer_dead)
            give_up(pending, reason.dead_pe, failure, first);
        if (pending.size() == before) {
            if (first.ok()) first = failure;
            break;
        }
        need_pending();
    }
    Status event = events();
    return first.ok() ? event : first;
}

// Removes complete and failed queues from `pending`.
void RemoteContext::poll_quiets(Queues& pending, Status& first) {
    std::erase_if(pending, [&](RemoteQueue* queue) { return poll_quiet(*queue, peers_, first) != Code::again; });
    std::erase_if(awaited_, [](const RemoteQueue* queue) { return !queue->outstanding(); });
}

}  // namespace npushmem
