// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/combined_descriptor.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace npushmem::network {

CombinedDescriptor::~CombinedDescriptor() {
    for (const int each : {descriptor_, waker_})
        if (each >= 0) ::close(each);
}

Result<CombinedDescriptor> CombinedDescriptor::of(std::span<const int> watched) {
    CombinedDescriptor out;
    out.descriptor_ = ::epoll_create1(EPOLL_CLOEXEC);
    out.waker_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::vector<int> all(watched.begin(), watched.end());
    all.push_back(out.waker_);
    for (const int each : all) {
        epoll_event wanted{};
        wanted.events = EPOLLIN;
        wanted.data.fd = each;
        if (each < 0 || out.descriptor_ < 0 || ::epoll_ctl(out.descriptor_, EPOLL_CTL_ADD, each, &wanted) != 0)
            return Status{Code::system,
                          fmt::format("cannot create a descriptor to wait for completions: {}", std::strerror(errno))};
    }
    return out;
}

void CombinedDescriptor::wake() {
    if (waker_ < 0 || std::exchange(awake_, true)) return;
    const std::uint64_t one = 1;
    (void)!::write(waker_, &one, sizeof one);
}

void CombinedDescriptor::rest() {
    if (!std::exchange(awake_, false)) return;
    std::uint64_t woken = 0;
    (void)!::read(waker_, &woken, sizeof woken);
}

}  // namespace npushmem::network
