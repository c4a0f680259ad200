#include "core/proxy/proxy.hpp"

#include <algorithm>

#include "core/base/service_thread.hpp"

namespace npushmem::proxy {
namespace {

// Whoever has something to do wakes it; no length would be too long.
constexpr std::chrono::seconds when_idle{10};
// Then those who wait for what is under way have their turn.
constexpr int most_taken_at_once = 64;

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
    Pace pace;
    // Relaxed: it is looked at again before a sleep.
    while (!stopping_.load(std::memory_order_relaxed)) {
        const bool taken = take();
        if (worker_.advance() || taken)
            pace = {};
        else
            rest(pace);
    }
    while (take()) {
    }
    worker_.give_up({Code::aborted, "the proxy of the emulated NPU is being ended"});
}

bool Proxy::take() {
    Request request;
    int taken = 0;
    while (taken < most_taken_at_once && ring_.try_pop(request)) {
        ++taken;
        worker_.accept(std::move(request));
    }
    return taken > 0;
}

void Proxy::rest(Pace& pace) {
    if (pace.polls++ < budget_.polls) return cpu_pause();
    const std::chrono::nanoseconds now = os_.now();
    if (pace.began.count() == 0) pace.began = now;
    const std::chrono::nanoseconds rested = now - pace.began;
    if (rested < budget_.spin_for) return cpu_pause();
    if (rested < budget_.spin_for + budget_.yield_for) return os_.yield();
    sleep(pace);
}

// Announce, look again, sleep: of a push and the announcement, all sequentially consistent, one comes first and is seen
// by the other side; and what is counted between the look and the sleep refuses the sleep.
void Proxy::sleep(Pace& pace) {
    pace.next_sleep = std::clamp(pace.next_sleep * 2, budget_.first_sleep, budget_.longest_sleep);
    line_.add_sleeper();
    const std::uint64_t seen = line_.value();
    if (ring_.all_taken() && !stopping_.load(std::memory_order_seq_cst)) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        line_.sleep(os_, seen, worker_.busy() ? pace.next_sleep : std::chrono::nanoseconds(when_idle));
    }
    line_.remove_sleeper();
}

}  // namespace npushmem::proxy
