#include "core/tools/run/poller.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace npushmem::run {

Result<Poller> Poller::open() {
    Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.open()) return Status{Code::system, std::string("epoll_create1: ") + std::strerror(errno)};
    return Poller(std::move(epoll));
}

Status Poller::add(int fd, std::uint32_t events, Handler handler) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        return {Code::system, "epoll_ctl for descriptor " + std::to_string(fd) + ": " + std::strerror(errno)};
    handlers_[fd] = std::move(handler);
    return {};
}

void Poller::modify(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
    if (handlers_.erase(fd) != 0) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Poller::run_once(std::optional<std::chrono::milliseconds> timeout) {
    std::array<epoll_event, 64> ready{};
    constexpr std::int64_t longest = 1 << 30;
    const int wait_ms = timeout ? static_cast<int>(std::clamp<std::int64_t>(timeout->count(), 0, longest)) : -1;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), wait_ms);
    for (int i = 0; i < count; ++i) {
        const auto found = handlers_.find(ready[static_cast<std::size_t>(i)].data.fd);
        if (found == handlers_.end()) continue;  // removed by a handler before it
        const Handler handler = found->second;   // a copy: the handler may remove itself
        handler(ready[static_cast<std::size_t>(i)].events);
    }
}

}  // namespace npushmem::run
