// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/request_queue.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::proxy {
namespace {

// A quiet starts when nothing is in flight: at most this many later requests may precede a waiting one.
constexpr std::uint64_t max_ahead_of_quiet = 64;
// Tokens polled in one call; each poll may drive the transport.
constexpr int max_tests = 8;

// Signals and modifying atomics follow all earlier puts to that PE.
bool comes_after_puts(const Request& request) {
    return request.kind == Request::Kind::put_signal || request.kind == Request::Kind::fence ||
           (request.kind == Request::Kind::atomic && request.atomic.operation != NPUSHMEM_ATOMIC_FETCH);
}

bool updates(const Request& request) {
    return request.kind == Request::Kind::put || request.kind == Request::Kind::put_signal ||
           (request.kind == Request::Kind::atomic && request.atomic.operation != NPUSHMEM_ATOMIC_FETCH);
}

}  // namespace

void RequestQueue::append(Request request) {
    if (spare_.empty()) spare_.emplace_back();
    to_post_.splice(to_post_.end(), spare_, spare_.begin());
    Entry& entry = to_post_.back();
    entry.request = std::move(request);
    entry.progress = {};
    entry.token = entry.result = 0;
    Request& mine = entry.request;
    if (mine.has_inline_data) mine.transfer.data.local = mine.inline_data.data();
    ++appended_;
}

void RequestQueue::fence(const std::shared_ptr<RequesterState>& requester) {
    const bool there = !to_post_.empty() && to_post_.back().request.kind == Request::Kind::fence;
    if (!outstanding() || there) return;
    Request request;
    request.kind = Request::Kind::fence;
    request.requester = requester;
    append(std::move(request));
}

void RequestQueue::add_quiet(const std::shared_ptr<QuietRequest>& wait) {
    if (!outstanding()) return;
    ++wait->open;
    quiets_.push_back({appended_, wait});
}

bool RequestQueue::advance() {
    const bool posted = post_some();
    const bool tested = test_some();
    return poll_quiet() || posted || tested;
}

bool RequestQueue::post_some() {
    bool happened = false;
    while (!to_post_.empty()) {
        if (!quiets_.empty() && posted_ >= quiets_.front().appended + max_ahead_of_quiet) break;
        Entry& entry = to_post_.front();
        const Code code = post(entry);
        if (code == Code::again) break;
        happened = true;
        ++posted_;
        if (code == Code::ok && entry.token != 0) {
            in_flight_.splice(in_flight_.end(), to_post_, to_post_.begin());
            continue;
        }
        end(to_post_, to_post_.begin(), outcome_of(entry, code));
    }
    return happened;
}

Code RequestQueue::post(Entry& entry) {
    Request& request = entry.request;
    if (comes_after_puts(request))
        if (const Code fenced = queue_.fence(); fenced != Code::ok) return fenced;
    switch (request.kind) {
        case Request::Kind::put: return queue_.put(request.transfer.data, &entry.token);
        case Request::Kind::get: return queue_.get(request.transfer.data, &entry.token);
        case Request::Kind::put_signal: return queue_.put_signal(request.transfer, entry.progress, &entry.token);
        case Request::Kind::atomic:
            request.atomic.result = request.number != 0 ? &entry.result : nullptr;
            return queue_.atomic(request.atomic, request.number != 0 ? &entry.token : nullptr);
        case Request::Kind::fence:
        case Request::Kind::quiet: break;
    }
    return Code::ok;
}

Status RequestQueue::outcome_of(const Entry& entry, Code code) const {
    return code == Code::ok ? Status{} : queue_.failure_of(entry.request.name(), code);
}

// Polls the oldest request and others in turn: unpolled ones move to the front for the next call.
bool RequestQueue::test_some() {
    bool happened = false;
    auto entry = in_flight_.begin();
    for (int tests = 0; tests < max_tests && entry != in_flight_.end(); ++tests) {
        const auto next = std::next(entry);
        const Code code = queue_.test(entry->token);
        if (code != Code::again) {
            happened = true;
            end(in_flight_, entry, outcome_of(*entry, code));
        }
        entry = next;
    }
    // The others follow in the next call.
    if (entry != in_flight_.end()) in_flight_.splice(in_flight_.end(), in_flight_, in_flight_.begin(), entry);
    return happened;
}

bool RequestQueue::poll_quiet() {
    if (quiets_.empty() || posted_ < quiets_.front().appended) return false;
    const Code code = queue_.quiet();
    if (code == Code::again) return false;
    Status outcome;
    if (code == Code::ok) {
        completed_ = posted_;
    } else {
        outcome = queue_.failure_of("quiet", code);
        report_update_failure(outcome);
    }
    updaters_.clear();
    while (!quiets_.empty() && quiets_.front().appended <= posted_) {
        report(quiets_.front(), outcome);
        quiets_.pop_front();
    }
    return true;
}

void RequestQueue::add_updater(const std::shared_ptr<RequesterState>& requester) {
    if (std::find(updaters_.begin(), updaters_.end(), requester) == updaters_.end()) updaters_.push_back(requester);
}

void RequestQueue::report_update_failure(const Status& failure) {
    for (const auto& updater : updaters_) {
        const bool is_waiting = std::any_of(quiets_.begin(), quiets_.end(), [&](const PendingQuiet& pending) {
            return pending.appended <= posted_ && pending.wait->requester == updater;
        });
        if (!is_waiting) updater->record_failure(failure);
    }
}

void RequestQueue::report(PendingQuiet& pending, const Status& outcome) {
    if (pending.wait->first.ok()) pending.wait->first = outcome;
    --pending.wait->open;
}

void RequestQueue::end(Entries& from, Entries::iterator entry, Status outcome) {
    Request& request = entry->request;
    const bool over = outcome.ok();
    if (request.number != 0)
        request.requester->report(request.number, std::move(outcome), entry->result);
    else if (!outcome.ok())
        request.requester->record_failure(std::move(outcome));
    if (request.kind != Request::Kind::fence) request.requester->finish();
    if (over && updates(request)) add_updater(request.requester);
    request.requester.reset();
    Entries& to = over ? spare_ : failed_;
    to.splice(to.end(), from, entry);
}

// Requests in flight are only reported: the transport may still access their memory.
void RequestQueue::abort(const Status& why) {
    while (!to_post_.empty()) end(to_post_, to_post_.begin(), why);
    for (Entry& entry : in_flight_)
        if (entry.request.number != 0) entry.request.requester->report(entry.request.number, why, 0);
    for (PendingQuiet& pending : quiets_) report(pending, why);
    quiets_.clear();
}

}  // namespace npushmem::proxy
