// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace npushmem {

std::size_t ensure_file_limit(std::size_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur >= wanted) return wanted;
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

namespace {

constexpr int backlog = 4096;  // the kernel cuts it to net.core.somaxconn

void set_option(int fd, int level, int name, int value) {
    // A system without an option works, but slower, or detects dead hosts later.
    (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// Sends small messages at once; detects a dead host within a minute.
void tune(int fd) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60000);
}

Status failed(const char* what, const Address& where, const char* remedy = "") {
    return {Code::system, fmt::format("cannot {} {}: {}{}", what, where.text(), std::strerror(errno), remedy)};
}

Socket make(const Address& where) {
    const int domain = where.family() == Family::v6 ? AF_INET6 : AF_INET;
    return Socket{::socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

Transfer outcome_of(ssize_t result, bool zero_is_end) {
    using enum Transfer::Outcome;
    if (result > 0) return {some, static_cast<std::size_t>(result)};
    if (result == 0) return {zero_is_end ? end : would_block};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {would_block};
    return {failed, 0, errno};
}

}  // namespace

Result<Socket> Socket::listen(const Address& where) {
    Socket made = make(where);
    if (!made.valid()) return failed("create a socket for", where);
    // A port with a fixed number must be usable again at once after its last user has ended.
    if (where.port() != 0) set_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_storage kernel_form;
    const socklen_t length = where.fill(kernel_form);
    if (::bind(made.fd(), reinterpret_cast<const sockaddr*>(&kernel_form), length) != 0)
        return failed("bind to", where, errno == EADDRINUSE ? " (another job with this address?)" : "");
    if (::listen(made.fd(), backlog) != 0) return failed("listen on", where);
    return made;
}

Result<Socket> Socket::connect(const Address& where) {
    Socket made = make(where);
    if (!made.valid()) return failed("create a socket for", where);
    tune(made.fd());
    sockaddr_storage kernel_form;
    const socklen_t length = where.fill(kernel_form);
    if (::connect(made.fd(), reinterpret_cast<const sockaddr*>(&kernel_form), length) != 0 && errno != EINPROGRESS)
        return Status{Code::unreachable, failed("connect to", where).message()};
    return made;
}

Socket Socket::accept(int& error) const {
    Socket made{::accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    error = made.valid() ? 0 : errno;
    if (made.valid()) tune(made.fd());
    return made;
}

int Socket::connect_error() const {
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    return error;
}

Address Socket::local_address() const {
    sockaddr_storage kernel_form{};
    socklen_t length = sizeof kernel_form;
    if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&kernel_form), &length) != 0) return {};
    return Address::from(reinterpret_cast<const sockaddr&>(kernel_form));
}

Transfer Socket::receive(std::span<std::byte> into) const {
    return outcome_of(::recv(fd(), into.data(), into.size(), 0), true);
}

Transfer Socket::send(std::span<const std::byte> from) const {
    return outcome_of(::send(fd(), from.data(), from.size(), MSG_NOSIGNAL), false);
}

void Socket::finish() const {
    constexpr int rounds = 64;  // a peer that never stops sending must not block this call
    std::array<std::byte, 4096> dropped;
    ::shutdown(fd(), SHUT_WR);
    for (int i = 0; i < rounds && receive(dropped).outcome == Transfer::Outcome::some; ++i) {
    }
}

}  // namespace npushmem
