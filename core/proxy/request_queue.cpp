#include "core/proxy/request_queue.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::proxy {
namespace {

// A quiet is asked of the transport when nothing is under way: so many later requests may go before an open one.
constexpr std::uint64_t most_ahead_of_quiet = 64;
// Tokens that are looked at in one go: each may drive the transport.
constexpr int most_tests = 8;

const char* name_of(Request::Kind kind) {
    switch (kind) {
        case Request::Kind::put: return "a put";
        case Request::Kind::get: return "a get";
        case Request::Kind::put_signal: return "a put with signal";
        case Request::Kind::atomic: return "an atomic";
        case Request::Kind::fence: return "a fence";
        case Request::Kind::quiet: return "quiet";
    }
    return "";
}

// Signals, and atomics that change something, come after everything that was put to that PE before.
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
    Job& job = to_post_.back();
    job.request = std::move(request);
    job.step = comes_after_puts(job.request) ? Step::fence : Step::operation;
    job.token = job.result = 0;
    Request& mine = job.request;
    mine.transfer.data.remote = mine.transfer.signal_remote = mine.atomic.remote = link_.remote;
    if (mine.carries) mine.transfer.data.local = mine.carried.data();
    ++appended_;
}

void RequestQueue::fence(const std::shared_ptr<Asker>& asker) {
    const bool there = !to_post_.empty() && to_post_.back().request.kind == Request::Kind::fence;
    if (!unsettled() || there) return;
    Request request;
    request.kind = Request::Kind::fence;
    request.asker = asker;
    append(std::move(request));
}

void RequestQueue::await(const std::shared_ptr<QuietWait>& wait) {
    if (!unsettled()) return;
    ++wait->open;
    quiets_.push_back({appended_, wait});
}

bool RequestQueue::advance() {
    const bool posted = post_some();
    const bool tested = test_some();
    return settle() || posted || tested;
}

bool RequestQueue::post_some() {
    bool happened = false;
    while (!to_post_.empty()) {
        if (!quiets_.empty() && posted_ >= quiets_.front().appended + most_ahead_of_quiet) break;
        Job& job = to_post_.front();
        const Code code = post(job);
        if (code == Code::again) break;
        happened = true;
        ++posted_;
        if (code == Code::ok && job.token != 0) {
            under_way_.splice(under_way_.end(), to_post_, to_post_.begin());
            continue;
        }
        end(to_post_, to_post_.begin(),
            code == Code::ok ? Status{} : peers_.failure_of(link_, name_of(job.request.kind), code));
    }
    return happened;
}

Code RequestQueue::post_fence() {
    const Code code = unfenced_ ? transport_itself().fence(link_.queue) : Code::ok;
    if (code == Code::ok) unfenced_ = false;
    return code;
}

// What has no room goes on from there the next time.
Code RequestQueue::post(Job& job) {
    if (job.step == Step::fence) {
        const Code fenced = post_fence();
        if (fenced != Code::ok || job.request.kind == Request::Kind::fence) return fenced;
        job.step = Step::operation;
    }
    if (job.step == Step::operation) {
        const Code code = post_operation(job);
        if (code != Code::ok) return code;
        unfenced_ = unfenced_ || updates(job.request);
        const bool whole =
            job.request.kind != Request::Kind::put_signal || peers_.reach(link_.pe).has(NPUSHMEM_CAP_PUT_SIGNAL);
        if (whole) return Code::ok;
        job.step = Step::fence_of_signal;
    }
    if (job.step == Step::fence_of_signal) {
        if (const Code fenced = post_fence(); fenced != Code::ok) return fenced;
        job.step = Step::signal;
    }
    unfenced_ = true;
    return post_signal(job);
}

Code RequestQueue::post_operation(Job& job) {
    Transport& transport = transport_itself();
    const Request& request = job.request;
    switch (request.kind) {
        case Request::Kind::get: return transport.get(link_.queue, request.transfer.data, &job.token);
        case Request::Kind::atomic: {
            npushmem_atomic op = request.atomic;
            op.result = request.number != 0 ? &job.result : nullptr;
            return transport.atomic(link_.queue, op, request.number != 0 ? &job.token : nullptr);
        }
        case Request::Kind::put_signal:
            if (peers_.reach(link_.pe).has(NPUSHMEM_CAP_PUT_SIGNAL))
                return transport.put_signal(link_.queue, request.transfer, &job.token);
            [[fallthrough]];
        default: return transport.put(link_.queue, request.transfer.data, &job.token);
    }
}

Code RequestQueue::post_signal(const Job& job) {
    const npushmem_put_signal& op = job.request.transfer;
    const auto operation =
        static_cast<std::uint8_t>(op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET);
    const npushmem_atomic update{link_.pe, operation, 8, 0, op.signal_remote, op.signal_offset, op.signal, 0, nullptr};
    return transport_itself().atomic(link_.queue, update, nullptr);
}

// The oldest, and others in turn: each round those that were not looked at go to the front of the next one.
bool RequestQueue::test_some() {
    bool happened = false;
    auto job = under_way_.begin();
    for (int tests = 0; tests < most_tests && job != under_way_.end(); ++tests) {
        const auto next = std::next(job);
        const Code code = transport_itself().test(link_.queue, job->token);
        if (code != Code::again) {
            happened = true;
            end(under_way_, job,
                code == Code::ok ? Status{} : peers_.failure_of(link_, name_of(job->request.kind), code));
        }
        job = next;
    }
    // The rest has its turn the next time.
    if (job != under_way_.end()) under_way_.splice(under_way_.end(), under_way_, under_way_.begin(), job);
    return happened;
}

// A quiet takes the failures of everything that it finds over, so it is asked only when no token is left to be asked
// for its own.
bool RequestQueue::settle() {
    if (quiets_.empty() || !under_way_.empty() || posted_ < quiets_.front().appended) return false;
    const Code code = transport_itself().quiet(link_.queue);
    if (code == Code::again) return false;
    Status outcome;
    if (code == Code::ok) {
        settled_ = posted_;
    } else {
        outcome = peers_.failure_of(link_, "quiet", code);
        tell_of_updates(outcome);
    }
    updaters_.clear();
    while (!quiets_.empty() && quiets_.front().appended <= posted_) {
        tell(quiets_.front(), outcome);
        quiets_.pop_front();
    }
    return true;
}

void RequestQueue::remember(const std::shared_ptr<Asker>& asker) {
    if (std::find(updaters_.begin(), updaters_.end(), asker) == updaters_.end()) updaters_.push_back(asker);
}

void RequestQueue::tell_of_updates(const Status& failure) {
    for (const auto& updater : updaters_) {
        const bool hears = std::any_of(quiets_.begin(), quiets_.end(), [&](const Await& await) {
            return await.appended <= posted_ && await.wait->asker == updater;
        });
        if (!hears) updater->note_failure(failure);
    }
}

void RequestQueue::tell(Await& await, const Status& outcome) {
    if (await.wait->first.ok()) await.wait->first = outcome;
    --await.wait->open;
}

void RequestQueue::end(Jobs& from, Jobs::iterator job, Status outcome) {
    Request& request = job->request;
    const bool over = outcome.ok();
    if (request.number != 0)
        request.asker->tell(request.number, std::move(outcome), job->result);
    else if (!outcome.ok())
        request.asker->note_failure(std::move(outcome));
    if (request.kind != Request::Kind::fence) request.asker->finish();
    if (over && updates(request)) remember(request.asker);
    request.asker.reset();
    Jobs& to = over ? spare_ : kept_;
    to.splice(to.end(), from, job);
}

// What is under way is only told of: the transport may still read and write the jobs' memory.
void RequestQueue::give_up(const Status& why) {
    while (!to_post_.empty()) end(to_post_, to_post_.begin(), why);
    for (Job& job : under_way_)
        if (job.request.number != 0) job.request.asker->tell(job.request.number, why, 0);
    for (Await& await : quiets_) tell(await, why);
    quiets_.clear();
}

}  // namespace npushmem::proxy
