// SPDX-License-Identifier: BSD-3-Clause
// The connections of one member of a team to all others: stream sockets that never wait.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "npushmem/plugin/collectives.hpp"

namespace mine_plugin {

using npushmem::Code;
using npushmem::Result;
using npushmem::Status;

// Owns a socket.
class Socket {
public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~Socket();

    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
    [[nodiscard]] int get() const { return descriptor_; }

private:
    int descriptor_ = -1;
};

class Connections {
public:
    // Collective over the members, with two exchanges. Fails if a member cannot be reached, such as one on another
    // host.
    static Result<Connections> make(const npushmem_coll_team& team);

    [[nodiscard]] int size() const { return static_cast<int>(sockets_.size()); }
    [[nodiscard]] int index() const { return index_; }

    // Send and receive as much as is possible at once, and reduce `bytes` and advance `data` by that. A failure names
    // the member.
    Status send(int member, const std::byte*& data, std::size_t& bytes) const;
    Status receive(int member, std::byte*& data, std::size_t& bytes) const;

private:
    Connections(int index, int size) : index_(index), sockets_(static_cast<std::size_t>(size)) {}

    [[nodiscard]] int socket_of(int member) const { return sockets_[static_cast<std::size_t>(member)].get(); }

    int index_;
    std::vector<Socket> sockets_;  // by member; none to itself
};

}  // namespace mine_plugin
