// SPDX-License-Identifier: BSD-3-Clause
#include "mine_channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mine_plugin {
namespace {

constexpr std::size_t max_read = 256 * 1024;

// An abstract name starts with a zero byte and ends with the address's length.
socklen_t fill(sockaddr_un& out, const std::string& name) {
    const std::size_t bytes = std::min(name.size(), sizeof out.sun_path - 1);
    out.sun_family = AF_UNIX;
    name.copy(out.sun_path + 1, bytes);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

bool is_of_this_user(int descriptor) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

std::uint64_t payload_bytes(const Header& header) { return header.kind == Kind::hello ? 0 : header.bytes; }

}  // namespace

Status system_failure(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

int milliseconds_until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

Channel::~Channel() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Channel> Channel::listen(const std::string& name) {
    Channel out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un form{};
    const socklen_t length = fill(form, name);
    if (!out.is_open() || ::bind(out.descriptor_, reinterpret_cast<sockaddr*>(&form), length) != 0 ||
        ::listen(out.descriptor_, SOMAXCONN) != 0)
        return system_failure("rank 0 cannot listen on the Unix socket @" + name);
    return out;
}

Result<Channel> Channel::connect(const std::string& name) {
    Channel out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!out.is_open()) return system_failure("cannot make a socket");
    sockaddr_un form{};
    const socklen_t length = fill(form, name);
    if (::connect(out.descriptor_, reinterpret_cast<sockaddr*>(&form), length) == 0) return out;
    Status failure = system_failure("cannot connect to the Unix socket @" + name);
    const bool may_come = errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR;
    return may_come ? Status{Code::unreachable, failure.message()} : failure;
}

Channel Channel::accept() const {
    Channel out(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!out.is_open() || !is_of_this_user(out.descriptor_)) return {};
    return out;
}

Result<std::pair<Channel, Channel>> Channel::pair() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return system_failure("cannot make a pair of sockets");
    return std::pair{Channel(ends[0]), Channel(ends[1])};
}

bool Channel::wait(short events, Clock::time_point deadline) const {
    pollfd wanted{descriptor_, events, 0};
    for (;;) {
        const int ready = ::poll(&wanted, 1, milliseconds_until(deadline));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

bool Channel::wait_readable(Clock::time_point deadline) const { return wait(POLLIN, deadline); }

bool Channel::send(Header header, std::span<const std::byte> payload, Clock::time_point deadline) const {
    if (header.kind != Kind::hello) header.bytes = payload.size();
    // sendmsg writes to neither, but its structures have no const.
    iovec parts[2] = {{&header, sizeof header}, {const_cast<std::byte*>(payload.data()), payload.size()}};
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        msghdr message{};
        message.msg_iov = parts[0].iov_len > 0 ? parts : parts + 1;
        message.msg_iovlen = parts[0].iov_len > 0 && parts[1].iov_len > 0 ? 2 : 1;
        const ssize_t sent = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait(POLLOUT, deadline)) return false;
            continue;
        }
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        auto left = static_cast<std::size_t>(sent);
        for (iovec& part : parts) {
            const std::size_t taken = std::min(left, part.iov_len);
            part.iov_base = static_cast<char*>(part.iov_base) + taken;
            part.iov_len -= taken;
            left -= taken;
        }
    }
    return true;
}

Channel::Received Channel::receive(Message& message) {
    for (;;) {
        std::size_t wanted = sizeof(Header);
        if (input_.size() >= sizeof(Header)) {
            std::memcpy(&message.header, input_.data(), sizeof(Header));
            const Header& header = message.header;
            if (header.magic != Header{}.magic || header.kind < Kind::hello || header.kind > Kind::bye)
                return Received::malformed;
            // The hub's answer to a gather has the parts of all ranks.
            wanted += payload_bytes(header);
            if (payload_bytes(header) > max_part * 1024) return Received::malformed;
        }
        if (input_.size() >= sizeof(Header) && input_.size() == wanted) {
            message.payload.assign(input_.begin() + sizeof(Header), input_.end());
            input_.clear();
            return Received::complete;
        }
        // Reads no byte of the next message, and no more memory than has arrived is used.
        const std::size_t have = input_.size();
        input_.resize(have + std::min(wanted - have, max_read));
        const ssize_t got = ::recv(descriptor_, input_.data() + have, input_.size() - have, MSG_DONTWAIT);
        input_.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) return Received::closed;
        if (got > 0 || errno == EINTR || errno == ECONNRESET) continue;  // a reset is reported once, before the end
        return errno == EAGAIN || errno == EWOULDBLOCK ? Received::partial : Received::closed;
    }
}

}  // namespace mine_plugin
