// SPDX-License-Identifier: BSD-3-Clause
#include "mine_wire.hpp"

#include <poll.h>
#include <sys/epoll.h>
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
constexpr std::uint64_t handle_magic = 0x6e707573686d656d;
constexpr int connect_timeout_seconds = 10;
constexpr int goodbye_timeout_ms = 1000;

// FNV-1a over the fields, word by word. Detects damage, not forgery.
std::uint64_t checksum_of(const Handle& handle) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (const std::uint64_t word : {handle_magic, handle.region, handle.bytes, handle.pe})
        sum = (sum ^ word) * 0x100000001b3;
    return sum ^ (sum >> 29);
}

template <class Struct>
Bytes bytes_of(const Struct& object) {
    Bytes out(sizeof object);
    std::memcpy(out.data(), &object, sizeof object);
    return out;
}

// An abstract name starts with a zero byte and ends with the address's length.
socklen_t fill(sockaddr_un& out, const Address& address) {
    const std::string_view name(address.name);
    out.sun_family = AF_UNIX;
    name.copy(out.sun_path + 1, name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

// The default room may not hold one message of the largest size. Best effort: the system has an upper limit.
void make_room(int descriptor, std::uint64_t piece) {
    const int bytes = static_cast<int>(4 * (piece + sizeof(Header)));
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

bool is_of_this_user(int descriptor) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace

Status system_failure(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

Result<Address> Address::decode(const npushmem_peer& peer) {
    Address out;
    if (peer.address == nullptr || peer.address_bytes != sizeof out)
        return Status{Code::protocol, "the address of PE " + std::to_string(peer.pe) + " has " +
                                          std::to_string(peer.address_bytes) + " bytes; transport mine expects " +
                                          std::to_string(sizeof out)};
    std::memcpy(&out, peer.address, sizeof out);
    const bool ends = std::memchr(out.name, 0, sizeof out.name) != nullptr;
    if (!ends || !std::string_view(out.name).starts_with(name_prefix))
        return Status{Code::protocol, "the address of PE " + std::to_string(peer.pe) + " is none of transport mine"};
    return out;
}

Bytes Address::encode() const { return bytes_of(*this); }

Result<Handle> Handle::decode(std::span<const std::byte> bytes, int pe) {
    Handle out;
    if (bytes.size() != sizeof out)
        return Status{Code::protocol, "a memory handle of PE " + std::to_string(pe) + " has " +
                                          std::to_string(bytes.size()) + " bytes; transport mine expects " +
                                          std::to_string(sizeof out)};
    std::memcpy(&out, bytes.data(), sizeof out);
    if (out.checksum != checksum_of(out))
        return Status{Code::protocol, "a memory handle of PE " + std::to_string(pe) +
                                          " is damaged, or none of transport mine: its checksum is wrong"};
    if (pe < 0 || out.pe != static_cast<std::uint64_t>(pe))
        return Status{Code::argument,
                      "a memory handle of PE " + std::to_string(out.pe) + " was given for PE " + std::to_string(pe)};
    return out;
}

Bytes Handle::encode() const {
    Handle out = *this;
    out.checksum = checksum_of(out);
    return bytes_of(out);
}

Socket::~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Socket> Socket::listen(Address& address) {
    std::uint64_t random[2] = {};
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        return system_failure("cannot get random bytes");
    address.secret = random[0];
    std::snprintf(address.name, sizeof address.name, "%s%ld-%016llx", name_prefix.data(), static_cast<long>(::getpid()),
                  static_cast<unsigned long long>(random[1]));
    Socket out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un form{};
    const socklen_t length = fill(form, address);
    if (!out.is_open() || ::bind(out.descriptor_, reinterpret_cast<sockaddr*>(&form), length) != 0 ||
        ::listen(out.descriptor_, SOMAXCONN) != 0)
        return system_failure("cannot listen on the Unix socket @" + std::string(address.name));
    return out;
}

Result<Socket> Socket::connect(const Address& address, int own_pe, std::uint64_t piece) {
    Socket out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!out.is_open()) return system_failure("cannot make a socket");
    const timeval limit{connect_timeout_seconds, 0};
    (void)::setsockopt(out.descriptor_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    make_room(out.descriptor_, piece);
    sockaddr_un form{};
    const socklen_t length = fill(form, address);
    int result = 0;
    do {
        result = ::connect(out.descriptor_, reinterpret_cast<sockaddr*>(&form), length);
    } while (result != 0 && errno == EINTR);
    Header hello;
    hello.kind = Kind::hello;
    hello.pe = own_pe;
    hello.operand = address.secret;
    if (result != 0 || out.send(hello, nullptr, 0) != Sent::yes) {
        const Code code = errno == EAGAIN ? Code::timeout : Code::unreachable;
        return Status{code, "cannot connect to the Unix socket @" + std::string(address.name) + ": " +
                                std::strerror(errno) + "; its PE may have ended"};
    }
    return out;
}

Socket Socket::accept(std::uint64_t piece) const {
    Socket out(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!out.is_open() || !is_of_this_user(out.descriptor_)) return {};
    make_room(out.descriptor_, piece);
    return out;
}

Socket::Sent Socket::send(const Header& header, const void* payload, std::size_t bytes) const {
    // sendmsg writes to neither, but its structures have no const.
    iovec parts[2] = {{const_cast<Header*>(&header), sizeof header}, {const_cast<void*>(payload), bytes}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = bytes > 0 ? 2 : 1;
    for (;;) {
        if (::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::yes;
        if (errno == EINTR) continue;
        const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
        return full ? Sent::full : Sent::closed;
    }
}

Socket::Received Socket::receive(std::span<std::byte> buffer, std::size_t& bytes) const {
    for (;;) {
        const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (got > 0) return Received::message;
        if (got == 0) return Received::closed;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return Received::none;
        // The peer closed without reading everything. The system reports this once, before the peer's last messages.
        if (errno == EINTR || errno == ECONNRESET) continue;
        return Received::closed;
    }
}

void Socket::say_goodbye() const {
    Header bye;
    bye.kind = Kind::bye;
    std::byte discarded[sizeof(Header)];
    std::size_t bytes = 0;
    while (send(bye, nullptr, 0) == Sent::full) {
        pollfd wanted{descriptor_, POLLOUT | POLLIN, 0};
        if (::poll(&wanted, 1, goodbye_timeout_ms) <= 0) return;
        while (receive(discarded, bytes) == Received::message) {
        }
    }
}

bool parse(std::span<const std::byte> message, Header& header, std::span<const std::byte>& payload) {
    if (message.size() < sizeof header) return false;
    std::memcpy(&header, message.data(), sizeof header);
    payload = message.subspan(sizeof header);
    return header.magic == message_magic && header.kind >= Kind::hello && header.kind <= Kind::bye;
}

Result<Poller> Poller::make() {
    Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open()) return system_failure("cannot make an epoll descriptor");
    return Poller(std::move(epoll));
}

Status Poller::add(int descriptor, std::uint64_t key) const {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = key;
    if (::epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, descriptor, &wanted) != 0)
        return system_failure("cannot wait for a socket by epoll");
    return {};
}

void Poller::watch(int descriptor, std::uint64_t key, Interest interest) const {
    epoll_event wanted{};
    if (interest != Interest::room) wanted.events |= EPOLLIN;
    if (interest != Interest::input) wanted.events |= EPOLLOUT;
    wanted.data.u64 = key;
    (void)::epoll_ctl(epoll_.descriptor(), EPOLL_CTL_MOD, descriptor, &wanted);
}

void Poller::remove(int descriptor) const {
    (void)::epoll_ctl(epoll_.descriptor(), EPOLL_CTL_DEL, descriptor, nullptr);
}

int Poller::wait(std::span<std::uint64_t, max_ready> keys, int timeout_ms) const {
    epoll_event ready[max_ready];
    const int count = ::epoll_wait(epoll_.descriptor(), ready, max_ready, timeout_ms);
    for (int i = 0; i < count; ++i) keys[static_cast<std::size_t>(i)] = ready[i].data.u64;
    return count > 0 ? count : 0;
}

}  // namespace mine_plugin
