#include "core/proxy/proxy.hpp"

#include <algorithm>

#include "core/base/service_thread.hpp"

namespace npushmem::proxy {
namespace {

// Whoever has something to do wakes it; no length would be too long.
constexpr std::chrono::seconds idle_sleep{10};
// Then those who wait for what is under way have their turn.
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
    stopping_.store(true, std::memory_order_seq_cst);  // pairs with the look of sleep()
    wake();
    if (thread_.joinable()) thread_.join();
}

bool Proxy::try_push(Request& request) {
    if (!ring_.try_push(request)) return false;
    wake();
    return true;
}

// After a push, or stopping_: pairs with the announcement in sleep().
void Proxy::wake() {
    if (line_.sleepers() == 0) return;
    line_.counter().fetch_add(1, std::memory_order_seq_cst);
    (void)line_.wake(1);
}

void Proxy::run() {
    IdleState idle;
    // Relaxed: it is looked at again before a sleep.
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

// Announce, look again, sleep: of a push and the announcement, all sequentially consistent, one comes first and is seen
// by the other side; and what is counted between the look and the sleep refuses the sleep.
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
