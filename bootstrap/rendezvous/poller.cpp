#include "bootstrap/rendezvous/poller.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace npushmem::rendezvous {
namespace {

epoll_event interest(std::uint64_t key, bool for_reading, bool for_writing) {
    epoll_event event{};
    event.events = (for_reading ? EPOLLIN : 0U) | (for_writing ? EPOLLOUT : 0U);
    event.data.u64 = key;
    return event;
}

}  // namespace

Result<Poller> Poller::make() {
    FileDescriptor handle{::epoll_create1(EPOLL_CLOEXEC)};
    if (!handle.valid())
        return Status{Code::system, fmt::format("cannot make an epoll descriptor: {}", std::strerror(errno))};
    return Poller{std::move(handle)};
}

Status Poller::watch(int fd, std::uint64_t key, bool for_writing) {
    epoll_event event = interest(key, true, for_writing);
    if (::epoll_ctl(handle_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return {Code::system, fmt::format("cannot watch file descriptor {}: {}", fd, std::strerror(errno))};
}

void Poller::modify(int fd, std::uint64_t key, bool for_reading, bool for_writing) {
    epoll_event event = interest(key, for_reading, for_writing);
    (void)::epoll_ctl(handle_.get(), EPOLL_CTL_MOD, fd, &event);  // fails only for a descriptor that is not watched
}

void Poller::remove(int fd) { (void)::epoll_ctl(handle_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::vector<Poller::Event> Poller::wait(Deadline deadline) {
    std::array<epoll_event, 256> raw;
    const int count =
        ::epoll_wait(handle_.get(), raw.data(), static_cast<int>(raw.size()), deadline.poll_milliseconds());
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = raw[static_cast<std::size_t>(i)];
        events.push_back(
            {event.data.u64, (event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0, (event.events & EPOLLOUT) != 0});
    }
    return events;
}

}  // namespace npushmem::rendezvous
