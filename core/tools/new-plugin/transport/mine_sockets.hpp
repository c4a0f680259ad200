// SPDX-License-Identifier: BSD-3-Clause
// The wire: connections over Unix sockets, and waiting for them. Replace this class by your own network.
//
// Sockets of type SOCK_SEQPACKET keep the borders of messages and their order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "mine_wire.hpp"

namespace mine_plugin {

// A PE's address: the name of its socket in the system's abstract namespace, which needs no file, and a secret that the
// hello of a connection must present. Only PEs that received the address from the bootstrap know the secret.
struct Address {
    char name[96] = {};
    std::uint64_t secret = 0;

    static Result<Address> decode(const npushmem_peer& peer);
    [[nodiscard]] Bytes encode() const;
};

// Owns a descriptor. Closed on exec, so that a program that the PE starts keeps no connection open.
class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();

    [[nodiscard]] int get() const { return number_; }
    [[nodiscard]] bool is_open() const { return number_ >= 0; }

private:
    int number_;
};

// Accepts and makes connections, and waits for all of them. Any thread. Outlives its connections.
class SocketWire {
public:
    // Listens under a new name. piece: largest number of bytes that follow a header.
    static Result<SocketWire> open(std::uint64_t piece);

    [[nodiscard]] const Address& address() const { return address_; }
    // Waits at most 10 s for the target's system to accept. `key` stands for the connection in `wait`: not 0 nor -1.
    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const Address& address, std::uint64_t key) const;
    // Accepts a connection of a process of the same user. Null: nobody waits, or a process of another user.
    // Code::system: there is no descriptor or memory for it. The connection stays in the listener's queue, and `wait`
    // does not report accept_key until `resume_accept`: it would return at once each time.
    [[nodiscard]] Result<std::unique_ptr<Connection>> accept(std::uint64_t key) const;
    // To be called when a connection has ended, whose descriptor is free again.
    void resume_accept() const;

    using Keys = std::array<std::uint64_t, 32>;
    static constexpr std::uint64_t accept_key = 0;
    // Fills in the keys of connections that can be served, and accept_key if one can be accepted; returns their number.
    // timeout_ms: 0 does not wait, -1 waits without limit.
    std::size_t wait(Keys& keys, int timeout_ms) const;
    // Ends every wait, now and in future.
    void wake() const;

private:
    void watch_listener(std::uint32_t events) const;

    Address address_;
    std::uint64_t piece_ = 0;
    Descriptor epoll_;
    Descriptor listener_;
    Descriptor wake_;
};

}  // namespace mine_plugin
