// SPDX-License-Identifier: BSD-3-Clause
#include "mine_sockets.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace mine_plugin {
namespace {

constexpr std::string_view name_prefix = "npushmem-mine-";
constexpr int connect_timeout_seconds = 10;
constexpr int close_timeout_ms = 1000;
constexpr std::uint64_t wake_key = ~std::uint64_t{0};

// "<what>: <the system's text for errno>"
Status system_failure(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

// An abstract name starts with a zero byte and ends with the address's length.
socklen_t fill(sockaddr_un& out, const Address& address) {
    const std::string_view name(address.name);
    out.sun_family = AF_UNIX;
    name.copy(out.sun_path + 1, name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

// The default room may not hold one message of the largest size. Best effort: the system has an upper limit.
void make_room(const Descriptor& socket, std::uint64_t piece) {
    const int bytes = static_cast<int>(4 * (piece + sizeof(Header)));
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

// The connection stays in the listener's queue.
bool is_lack_of_resources(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

bool is_of_this_user(const Descriptor& socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

Status add_to_epoll(const Descriptor& epoll, const Descriptor& added, std::uint64_t key) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = key;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, added.get(), &wanted) != 0)
        return system_failure("cannot wait for a socket by epoll");
    return {};
}

class SocketConnection final : public Connection {
public:
    // A closed socket leaves epoll by itself.
    SocketConnection(Descriptor socket, int epoll, std::uint64_t key)
        : socket_(std::move(socket)), epoll_(epoll), key_(key) {}

    Sent send(const Header& header, std::span<const std::byte> payload) override;
    Received receive(std::span<std::byte> buffer, std::size_t& bytes) override;
    void watch(Interest interest) override;
    void close() override;

private:
    const Descriptor socket_;
    const int epoll_;
    const std::uint64_t key_;
    bool peer_said_bye_ = false;
};

// Neither waits nor raises SIGPIPE.
Connection::Sent SocketConnection::send(const Header& header, std::span<const std::byte> payload) {
    // sendmsg writes to neither, but its structures have no const.
    iovec parts[2] = {{const_cast<Header*>(&header), sizeof header},
                      {const_cast<std::byte*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = payload.empty() ? 1 : 2;
    for (;;) {
        if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::yes;
        if (errno == EINTR) continue;
        const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
        return full ? Sent::full : Sent::closed;
    }
}

Connection::Received SocketConnection::receive(std::span<std::byte> buffer, std::size_t& bytes) {
    for (;;) {
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (got > 0) {
            Header header;
            std::span<const std::byte> payload;
            const bool is_bye = parse(buffer.first(bytes), header, payload) && header.kind == Kind::bye;
            if (!is_bye) return Received::message;
            peer_said_bye_ = true;
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::none;
        // The peer closed without reading everything. The system reports this once, before the peer's last messages.
        if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
        return peer_said_bye_ ? Received::closed : Received::broken;
    }
}

void SocketConnection::watch(Interest interest) {
    epoll_event wanted{};
    if (interest != Interest::room) wanted.events |= EPOLLIN;
    if (interest != Interest::input) wanted.events |= EPOLLOUT;
    wanted.data.u64 = key_;
    (void)::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &wanted);
}

void SocketConnection::close() {
    Header bye;
    bye.kind = Kind::bye;
    std::byte discarded[sizeof(Header)];
    std::size_t bytes = 0;
    while (send(bye, {}) == Sent::full) {
        pollfd wanted{socket_.get(), POLLOUT | POLLIN, 0};
        if (::poll(&wanted, 1, close_timeout_ms) <= 0) return;
        while (receive(discarded, bytes) == Received::message) {
        }
    }
}

}  // namespace

Result<Address> Address::decode(const npushmem_peer& peer) {
    Address out;
    if (peer.address == nullptr || peer.address_bytes != sizeof out)
        return Status{Code::protocol, "the address of PE " + std::to_string(peer.pe) + " has " +
                                          std::to_string(peer.address_bytes) + " bytes; transport mine expects " +
                                          std::to_string(sizeof out)};
    std::memcpy(&out, peer.address, sizeof out);
    const bool ends = std::memchr(out.name, 0, sizeof out.name) != nullptr;
    if (!ends || !std::string_view(out.name).starts_with(name_prefix))
        return Status{Code::protocol,
                      "the address of PE " + std::to_string(peer.pe) + " is not an address of transport mine"};
    return out;
}

Bytes Address::encode() const {
    Bytes out(sizeof *this);
    std::memcpy(out.data(), this, sizeof *this);
    return out;
}

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

Result<SocketWire> SocketWire::open(std::uint64_t piece) {
    SocketWire out;
    out.piece_ = piece;
    std::uint64_t random[2] = {};
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        return system_failure("cannot get random bytes");
    out.address_.secret = random[0];
    std::snprintf(out.address_.name, sizeof out.address_.name, "%s%ld-%016llx", name_prefix.data(),
                  static_cast<long>(::getpid()), static_cast<unsigned long long>(random[1]));
    out.listener_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un form{};
    const socklen_t length = fill(form, out.address_);
    if (!out.listener_.is_open() || ::bind(out.listener_.get(), reinterpret_cast<sockaddr*>(&form), length) != 0 ||
        ::listen(out.listener_.get(), SOMAXCONN) != 0)
        return system_failure("cannot listen on the Unix socket @" + std::string(out.address_.name));
    out.epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    out.wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!out.epoll_.is_open() || !out.wake_.is_open())
        return system_failure("cannot make an epoll or event descriptor");
    if (Status added = add_to_epoll(out.epoll_, out.wake_, wake_key); !added.ok()) return added;
    if (Status added = add_to_epoll(out.epoll_, out.listener_, accept_key); !added.ok()) return added;
    return out;
}

Result<std::unique_ptr<Connection>> SocketWire::connect(const Address& address, std::uint64_t key) const {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) return system_failure("cannot make a socket");
    const timeval limit{connect_timeout_seconds, 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    make_room(socket, piece_);
    sockaddr_un form{};
    const socklen_t length = fill(form, address);
    int result = 0;
    do {
        result = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&form), length);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        const Code code = errno == EAGAIN ? Code::timeout : Code::unreachable;
        return Status{code, "cannot connect to the Unix socket @" + std::string(address.name) + ": " +
                                std::strerror(errno) + "; its PE may have ended"};
    }
    if (Status added = add_to_epoll(epoll_, socket, key); !added.ok()) return added;
    return std::unique_ptr<Connection>(std::make_unique<SocketConnection>(std::move(socket), epoll_.get(), key));
}

Result<std::unique_ptr<Connection>> SocketWire::accept(std::uint64_t key) const {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open() && is_lack_of_resources(errno)) {
        const Status failed = system_failure("cannot accept a connection");
        watch_listener(0);
        return failed;
    }
    if (!socket.is_open() || !is_of_this_user(socket)) return std::unique_ptr<Connection>();
    make_room(socket, piece_);
    if (Status added = add_to_epoll(epoll_, socket, key); !added.ok()) return added;
    return std::unique_ptr<Connection>(std::make_unique<SocketConnection>(std::move(socket), epoll_.get(), key));
}

void SocketWire::resume_accept() const { watch_listener(EPOLLIN); }

void SocketWire::watch_listener(std::uint32_t events) const {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.u64 = accept_key;
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &wanted);
}

std::size_t SocketWire::wait(Keys& keys, int timeout_ms) const {
    std::array<epoll_event, std::tuple_size_v<Keys>> ready;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
    std::size_t out = 0;
    for (int i = 0; i < count; ++i)
        if (const std::uint64_t key = ready[static_cast<std::size_t>(i)].data.u64; key != wake_key) keys[out++] = key;
    return out;
}

void SocketWire::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

}  // namespace mine_plugin
