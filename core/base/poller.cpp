// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/poller.hpp"

#include <fmt/format.h>
#include <array>
#include <cerrno>
#include <cstring>

namespace npushmem {

namespace {

epoll_event interest_in(std::uint64_t key, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    return event;
}

}  // namespace

Result<Poller> Poller::open() {
    FileDescriptor epoll{::epoll_create1(EPOLL_CLOEXEC)};
    if (!epoll.valid())
        return Status{Code::system, fmt::format("cannot create an epoll descriptor: {}", std::strerror(errno))};
    return Poller{std::move(epoll)};
}

Status Poller::watch(int fd, std::uint64_t key, std::uint32_t events) {
    epoll_event event = interest_in(key, events);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return {Code::system, fmt::format("cannot watch file descriptor {}: {}", fd, std::strerror(errno))};
}

void Poller::modify(int fd, std::uint64_t key, std::uint32_t events) {
    epoll_event event = interest_in(key, events);
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);  // fails only for a descriptor that is not watched
}

void Poller::remove(int fd) { (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::vector<Poller::Event> Poller::wait(int milliseconds) const {
    std::array<epoll_event, 256> ready;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), milliseconds);
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = ready[static_cast<std::size_t>(i)];
        events.push_back({event.data.u64, event.events});
    }
    return events;
}

}  // namespace npushmem
