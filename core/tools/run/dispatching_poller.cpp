// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/dispatching_poller.hpp"

#include <algorithm>

namespace npushmem::run {

Result<DispatchingPoller> DispatchingPoller::open() {
    auto opened = Poller::open();
    if (!opened.ok()) return opened.status();
    return DispatchingPoller(std::move(opened).value());
}

Status DispatchingPoller::add(int fd, std::uint32_t events, Handler handler) {
    if (Status watched = poller_.watch(fd, static_cast<std::uint64_t>(fd), events); !watched.ok()) return watched;
    handlers_[fd] = std::move(handler);
    return {};
}

void DispatchingPoller::remove(int fd) {
    if (handlers_.erase(fd) != 0) poller_.remove(fd);
}

void DispatchingPoller::run_once(std::optional<std::chrono::milliseconds> timeout) {
    constexpr std::int64_t longest = 1 << 30;
    const int wait_ms = timeout ? static_cast<int>(std::clamp<std::int64_t>(timeout->count(), 0, longest)) : -1;
    for (const Poller::Event& event : poller_.wait(wait_ms)) {
        const auto found = handlers_.find(static_cast<int>(event.key));
        if (found == handlers_.end()) continue;  // removed by a handler before it
        const Handler handler = found->second;   // a copy: the handler may remove itself
        handler(event.events);
    }
}

}  // namespace npushmem::run
