// SPDX-License-Identifier: BSD-3-Clause
// The limit of open files, and TCP sockets.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/address.hpp"
#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Raises the process's soft limit of open files up to the hard limit so that at least `wanted` descriptors fit. Returns
// the limit. It changes the process-wide setting only if the default (usually 1024) is too small for the job.
std::size_t ensure_file_limit(std::size_t wanted);

// A TCP socket as an owned, non-blocking, close-on-exec file descriptor. No call here waits.

// The result of a read or write. `bytes` is valid for `some`, `error` (an errno) for `failed`.
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

    // Binds and listens with the largest backlog that the kernel grants; port 0: the kernel chooses.
    static Result<Socket> listen(const Address& where);
    // Begins to connect. The socket is writable when it is done; then call connect_error(). Code::unreachable: there is
    // no way to the address; Code::system: there is no socket.
    static Result<Socket> connect(const Address& where);

    // Accepts the next connection; an invalid socket and errno in `error` if there is none.
    Socket accept(int& error) const;

    [[nodiscard]] bool valid() const { return fd_.valid(); }
    [[nodiscard]] int fd() const { return fd_.get(); }
    // The errno of a connect that is done, 0 for success.
    [[nodiscard]] int connect_error() const;
    [[nodiscard]] Address local_address() const;

    Transfer receive(std::span<std::byte> into) const;
    Transfer send(std::span<const std::byte> from) const;
    // Ends the stream to the peer and drops received bytes, so that close() does not reset the connection and discard
    // the bytes that the peer has not read yet.
    void finish() const;

private:
    FileDescriptor fd_;
};

}  // namespace npushmem
