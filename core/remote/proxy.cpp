// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/proxy.hpp"

#include <algorithm>
#include <utility>

#include "core/base/service_thread.hpp"

namespace npushmem::proxy {

void Worker::activate(RequestQueue& queue) {
    if (std::find(active_.begin(), active_.end(), &queue) == active_.end()) active_.push_back(&queue);
}

void Worker::reject(const Request& request, Status why) {
    if (request.number != 0)
        request.requester->report(request.number, std::move(why), 0);
    else
        request.requester->record_failure(std::move(why));
    request.requester->finish();
}

void Worker::accept(Request request) {
    if (request.kind == Request::Kind::fence) return accept_fence(request);
    if (request.kind == Request::Kind::quiet) return accept_quiet(request);
    const auto queue = queues_.find_or_open(request.pe());
    if (!queue.ok()) return reject(request, queue.status());
    if (request.kind == Request::Kind::atomic)
        if (Status able = peers_.supports(request.atomic); !able.ok()) return reject(request, std::move(able));
    queue.value()->append(std::move(request));
    activate(*queue.value());
}

void Worker::accept_fence(const Request& request) {
    for (RequestQueue& queue : queues_) {
        queue.fence(request.requester);
        if (!queue.idle()) activate(queue);
    }
    if (Status event = peers_.events_of(queues_.transports()); !event.ok())
        request.requester->record_failure(std::move(event));
    request.requester->finish();
}

void Worker::accept_quiet(Request& request) {
    const auto wait = std::make_shared<QuietRequest>();
    wait->requester = std::move(request.requester);
    wait->number = request.number;
    for (RequestQueue& queue : queues_) {
        queue.add_quiet(wait);
        if (!queue.idle()) activate(queue);
    }
    quiets_.push_back(wait);
    (void)answer_quiets();
}

bool Worker::answer_quiets() {
    return std::erase_if(quiets_, [this](const std::shared_ptr<QuietRequest>& wait) {
               if (wait->open > 0) return false;
               Status event = peers_.events_of(queues_.transports());
               wait->requester->report(wait->number, wait->first.ok() ? std::move(event) : std::move(wait->first), 0);
               wait->requester->finish();
               return true;
           }) > 0;
}

bool Worker::advance() {
    bool happened = false;
    for (RequestQueue* const queue : active_) happened = queue->advance() || happened;
    std::erase_if(active_, [](const RequestQueue* queue) { return queue->idle(); });
    happened = answer_quiets() || happened;
    if (!happened && busy()) peers_.progress_transports();
    return happened;
}

void Worker::abort(const Status& why) {
    for (RequestQueue& queue : queues_) queue.abort(why);
    (void)answer_quiets();
    active_.clear();
}

namespace {

// A push wakes the thread earlier.
constexpr std::chrono::seconds idle_sleep{10};
// Requests taken before the queues advance.
constexpr int max_taken_at_once = 64;

}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::start(RemotePeers& peers, const WaitBudget& budget, WaitOs& os) {
    std::unique_ptr<Proxy> made(new Proxy(peers, budget, os));
    auto thread = start_service_thread("npushmem-proxy", [proxy = made.get()] { proxy->run(); });
    if (!thread.ok()) return thread.status().within("the proxy of the emulated NPU");
    made->thread_ = std::move(thread).value();
    return made;
}

Proxy::~Proxy() {
    stopping_.store(true, std::memory_order_seq_cst);  // Partner: the check in sleep()
    wake();
    if (thread_.joinable()) thread_.join();
}

bool Proxy::try_push(Request& request) {
    if (!ring_.try_push(request)) return false;
    wake();
    return true;
}

// After a push or stopping_. Partner: the announcement in sleep().
void Proxy::wake() {
    if (line_.sleepers() == 0) return;
    line_.counter().fetch_add(1, std::memory_order_seq_cst);
    (void)line_.wake(1);
}

void Proxy::run() {
    IdleState idle;
    // Relaxed: checked again before a sleep.
    while (!stopping_.load(std::memory_order_relaxed)) {
        const bool taken = take();
        if (worker_.advance() || taken)
            idle = {};
        else
            back_off(idle);
    }
    while (take()) {
    }
    worker_.abort({Code::aborted, "the proxy of the emulated NPU is being ended"});
}

bool Proxy::take() {
    Request request;
    int taken = 0;
    while (taken < max_taken_at_once && ring_.try_pop(request)) {
        ++taken;
        worker_.accept(std::move(request));
    }
    return taken > 0;
}

void Proxy::back_off(IdleState& idle) {
    if (idle.polls++ < budget_.polls) return cpu_pause();
    const std::chrono::nanoseconds now = os_.now();
    if (idle.began.count() == 0) idle.began = now;
    const std::chrono::nanoseconds idle_time = now - idle.began;
    if (idle_time < budget_.spin_for) return cpu_pause();
    if (idle_time < budget_.spin_for + budget_.yield_for) return os_.yield();
    sleep(idle);
}

// Announces, checks again, sleeps. A push and the announcement are sequentially consistent, so the later side sees the
// earlier one. A wake-up between the check and the sleep changes the counter, and the kernel rejects the sleep.
void Proxy::sleep(IdleState& idle) {
    idle.next_sleep = std::clamp(idle.next_sleep * 2, budget_.first_sleep, budget_.longest_sleep);
    line_.add_sleeper();
    const std::uint64_t seen = line_.value();
    if (ring_.all_taken() && !stopping_.load(std::memory_order_seq_cst)) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        line_.sleep(os_, seen, worker_.busy() ? idle.next_sleep : std::chrono::nanoseconds(idle_sleep));
    }
    line_.remove_sleeper();
}

}  // namespace npushmem::proxy
