// A TCP socket as an owned, non-blocking, close-on-exec file descriptor. No call here waits.
#pragma once

#include <cstddef>
#include <span>

#include "bootstrap/rendezvous/address.hpp"
#include "bootstrap/rendezvous/file_descriptor.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// What a read or write came to. `bytes` is valid for `some`, `error` (an errno) for `failed`.
struct Transfer {
    enum class Outcome { some, would_block, end, failed };
    Outcome outcome;
    std::size_t bytes = 0;
    int error = 0;
};

class Socket {
public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}

    // Bound and listening with the largest backlog the kernel grants; port 0 lets the kernel choose.
    static Result<Socket> listen(const Address& where);
    // Begins to connect; writable when done, then ask connect_error().
    static Result<Socket> connect(const Address& where);

    // The next waiting connection; an invalid socket and errno in `error` when there is none.
    Socket accept(int& error) const;

    [[nodiscard]] bool valid() const { return fd_.valid(); }
    [[nodiscard]] int fd() const { return fd_.get(); }
    // errno of a connect that ended, 0 for success.
    [[nodiscard]] int connect_error() const;
    [[nodiscard]] Address local_address() const;

    Transfer receive(std::span<std::byte> into) const;
    Transfer send(std::span<const std::byte> from) const;
    // Ends the stream towards the peer, and drops what the peer sent, so that close() does not reset the connection
    // and with it what the peer has not read yet.
    void finish() const;

private:
    FileDescriptor fd_;
};

}  // namespace npushmem::rendezvous
