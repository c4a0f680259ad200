// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launcher/stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/parse.hpp"
#include "core/base/socket.hpp"

namespace npushmem::launcher {
namespace {

constexpr std::size_t longest_line = 64 * 1024;  // launchers' answers are shorter; longer input is garbage

Status connection_closed() {
    return {Code::peer_dead, "the launcher has closed its connection to this process; has it ended?"};
}

Status failed(const char* what) {
    return {Code::system, fmt::format("cannot {} the launcher: {}", what, std::strerror(errno))};
}

// Some launchers provide a socket, some a pipe.
ssize_t write_some(int fd, std::string_view text) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && errno == ENOTSOCK ? ::write(fd, text.data(), text.size()) : sent;
}

}  // namespace

Result<Stream> Stream::connect(const std::string& where, Deadline deadline) {
    auto address = Address::resolve(where, Family::none);
    if (!address.ok()) return address.status();
    const auto begun = Socket::connect(address.value());
    if (!begun.ok()) return begun.status();
    pollfd waiting{begun.value().fd(), POLLOUT, 0};
    (void)::poll(&waiting, 1, deadline.poll_milliseconds());
    const int error = waiting.revents == 0 ? ETIMEDOUT : begun.value().connect_error();
    if (error != 0)
        return Status{Code::unreachable,
                      fmt::format("cannot connect to the launcher at {}: {}", where, std::strerror(error))};
    return own(FileDescriptor(::fcntl(begun.value().fd(), F_DUPFD_CLOEXEC, 0)));
}

Status Stream::await(short events, Deadline deadline) const {
    for (;;) {
        pollfd waiting{fd_, events, 0};
        const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return failed("wait for");
        if (deadline.passed())
            return {Code::timeout,
                    fmt::format("the launcher did not answer within {}; has every rank of the job called "
                                "npushmem's start?",
                                format_duration(deadline.span()))};
    }
}

Status Stream::send(std::string_view text, Deadline deadline) {
    while (!text.empty()) {
        if (Status ready = await(POLLOUT, deadline); !ready.ok()) return ready;
        const ssize_t sent = write_some(fd_, text);
        if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return connection_closed();
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return failed("write to");
    }
    return {};
}

Status Stream::fill(Deadline deadline) {
    if (Status ready = await(POLLIN, deadline); !ready.ok()) return ready;
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(fd_, piece.data(), piece.size());
    if (got > 0) received_.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return connection_closed();
    return got > 0 || errno == EINTR || errno == EAGAIN ? Status{} : failed("read from");
}

std::string Stream::take(std::size_t bytes) {
    std::string out = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return out;
}

Result<std::string> Stream::receive_line(Deadline deadline) {
    for (;;) {
        if (const auto end = received_.find('\n'); end != std::string::npos) {
            std::string line = take(end + 1);
            line.pop_back();
            return line;
        }
        if (received_.size() > longest_line)
            return Status{Code::protocol, fmt::format("the launcher sent a line of more than {} bytes", longest_line)};
        if (Status filled = fill(deadline); !filled.ok()) return filled;
    }
}

Result<std::string> Stream::receive(std::size_t bytes, Deadline deadline) {
    while (received_.size() < bytes)
        if (Status filled = fill(deadline); !filled.ok()) return filled;
    return take(bytes);
}

}  // namespace npushmem::launcher
