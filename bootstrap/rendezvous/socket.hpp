// File descriptors: an owner, the limit of open files, TCP sockets, and epoll.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bootstrap/rendezvous/address.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// Owns a file descriptor.
class FileDescriptor {
public:
    FileDescriptor() = default;
    explicit FileDescriptor(int fd) : fd_(fd) {}
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() {
        if (valid()) ::close(fd_);
    }

    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_ = -1;
};

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
    // Begins to connect. The socket is writable when it is done; then call connect_error().
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

// An epoll descriptor with 64-bit keys, level-triggered.
class Poller {
public:
    struct Event {
        std::uint64_t key;
        bool readable;  // or closed, which reading reports
        bool writable;
    };

    static Result<Poller> make();

    [[nodiscard]] int fd() const { return handle_.get(); }

    Status watch(int fd, std::uint64_t key, bool for_writing = false);
    // Changes the events of a watched descriptor.
    void modify(int fd, std::uint64_t key, bool for_reading, bool for_writing);
    // Call this only for a descriptor that stays open: closing removes a descriptor.
    void remove(int fd);
    // Returns up to a few hundred events; none at the deadline or after a signal.
    std::vector<Event> wait(Deadline deadline);

private:
    explicit Poller(FileDescriptor handle) : handle_(std::move(handle)) {}

    FileDescriptor handle_;
};

}  // namespace npushmem::rendezvous
