// SPDX-License-Identifier: BSD-3-Clause
#include "mine_connections.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace mine_plugin {

namespace {

// Where a member listens. Plain bytes, which the members exchange.
struct Address {
    sockaddr_un name;
    std::uint32_t name_bytes;
    std::uint64_t secret;  // only members know it
};

// The first message of the member that connects.
struct Hello {
    std::uint64_t secret;  // of the listening member
    std::int64_t index;
};

Status failed(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

Socket new_socket() { return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// Listens at an abstract name that the kernel chooses.
Result<Socket> listen(Address& own, int callers) {
    Socket listener = new_socket();
    sockaddr_un any{};
    any.sun_family = AF_UNIX;
    socklen_t bytes = sizeof own.name;
    if (!listener.is_open() || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) != 0 ||
        ::listen(listener.get(), callers) != 0 ||
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own.name), &bytes) != 0)
        return failed("cannot listen on a Unix socket");
    own.name_bytes = bytes;
    if (::getrandom(&own.secret, sizeof own.secret, 0) != static_cast<ssize_t>(sizeof own.secret))
        return failed("cannot draw a random number");
    return listener;
}

// Completes at once, because the other member listens and has room for all.
Result<Socket> connect(const Address& there, int own_index, int member) {
    Socket socket = new_socket();
    const Hello hello{there.secret, own_index};
    if (!socket.is_open() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there.name), there.name_bytes) != 0 ||
        ::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello))
        return failed("cannot connect to member " + std::to_string(member) + ", which may be on another host");
    return socket;
}

// Returns the index of the member that has connected; -1: it is none.
int index_of(const Socket& socket, std::uint64_t secret, int size) {
    Hello hello{};
    const ssize_t got = ::recv(socket.get(), &hello, sizeof hello, 0);
    const bool known = got == static_cast<ssize_t>(sizeof hello) && hello.secret == secret;
    return known && hello.index >= 0 && hello.index < size ? static_cast<int>(hello.index) : -1;
}

bool is_not_yet() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Socket::~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

// Each member connects to those before it. The second exchange ends when all have, so accept never waits.
Result<Connections> Connections::make(const npushmem_coll_team& team) {
    Connections made(team.index, team.size);
    Address own{};
    auto listener = listen(own, team.size);
    if (!listener.ok()) return listener.status();
    std::vector<Address> addresses(static_cast<std::size_t>(team.size));
    Status exchanged = npushmem::gather_from_members(team, std::as_bytes(std::span(&own, 1)),
                                                     std::as_writable_bytes(std::span(addresses)));
    if (!exchanged.ok()) return exchanged;
    for (int member = 0; member < team.index; ++member) {
        auto socket = connect(addresses[static_cast<std::size_t>(member)], team.index, member);
        if (!socket.ok()) return socket.status();
        made.sockets_[static_cast<std::size_t>(member)] = std::move(socket).value();
    }
    const std::byte connected{1};
    std::vector<std::byte> all(static_cast<std::size_t>(team.size));
    exchanged = npushmem::gather_from_members(team, std::span(&connected, 1), all);
    if (!exchanged.ok()) return exchanged;
    for (;;) {
        Socket socket(::accept4(listener.value().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.is_open()) break;
        if (const int member = index_of(socket, own.secret, team.size); member > team.index)
            made.sockets_[static_cast<std::size_t>(member)] = std::move(socket);
    }
    for (int member = team.index + 1; member < team.size; ++member)
        if (!made.sockets_[static_cast<std::size_t>(member)].is_open())
            return Status{Code::unreachable, "member " + std::to_string(member) + " has not connected"};
    return made;
}

Status Connections::send(int member, const std::byte*& data, std::size_t& bytes) const {
    while (bytes > 0) {
        const ssize_t sent = ::send(socket_of(member), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && is_not_yet()) return {};
        if (sent < 0) return failed("cannot send to member " + std::to_string(member));
        data += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
    return {};
}

Status Connections::receive(int member, std::byte*& data, std::size_t& bytes) const {
    while (bytes > 0) {
        const ssize_t got = ::recv(socket_of(member), data, bytes, MSG_DONTWAIT);
        if (got < 0 && is_not_yet()) return {};
        if (got < 0) return failed("cannot receive from member " + std::to_string(member));
        if (got == 0) return {Code::system, "member " + std::to_string(member) + " has closed its connection"};
        data += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return {};
}

}  // namespace mine_plugin
