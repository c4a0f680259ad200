#include "transports/network/combined_descriptor.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace npushmem::network {

CombinedDescriptor::~CombinedDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Result<CombinedDescriptor> CombinedDescriptor::of(std::span<const int> watched) {
    CombinedDescriptor out;
    out.descriptor_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (const int each : watched) {
        epoll_event wanted{};
        wanted.events = EPOLLIN;
        wanted.data.fd = each;
        if (out.descriptor_ < 0 || ::epoll_ctl(out.descriptor_, EPOLL_CTL_ADD, each, &wanted) != 0)
            return Status{Code::system,
                          fmt::format("no descriptor to wait for completions on: {}", std::strerror(errno))};
    }
    return out;
}

}  // namespace npushmem::network
