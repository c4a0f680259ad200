// SPDX-License-Identifier: BSD-3-Clause
// Waits for any of several file descriptors: an epoll descriptor with 64-bit keys, level-triggered.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>
#include <cstdint>
#include <utility>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Owns a file descriptor and closes it exactly once.

class FileDescriptor {
public:
    FileDescriptor() = default;
    explicit FileDescriptor(int fd) : fd_(fd) {}
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() { reset(); }

    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    [[nodiscard]] int get() const { return fd_; }
    void reset(int fd = -1) {
        if (valid()) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_ = -1;
};

// One thread. The caller keeps ownership of the descriptors that it watches.
class Poller {
public:
    struct Event {
        std::uint64_t key;
        std::uint32_t events;  // as for epoll

        // Also true for a closed descriptor, which reading reports.
        [[nodiscard]] bool readable() const { return (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0; }
        [[nodiscard]] bool writable() const { return (events & EPOLLOUT) != 0; }
    };

    // A poller that is not open: fd() is -1 and it can watch nothing.
    Poller() = default;
    static Result<Poller> open();

    // Readable when a watched descriptor is ready.
    [[nodiscard]] int fd() const { return epoll_.get(); }

    // `events` as for epoll.
    Status watch(int fd, std::uint64_t key, std::uint32_t events = EPOLLIN);
    // Changes the events of a watched descriptor. Without events only hang-ups and errors are reported.
    void modify(int fd, std::uint64_t key, std::uint32_t events);
    // Call this only for a descriptor that stays open: closing removes a descriptor.
    void remove(int fd);
    // Returns up to a few hundred events, in the order in which they became ready. Returns none when the time has
    // passed or after a signal; -1: waits without limit.
    [[nodiscard]] std::vector<Event> wait(int milliseconds) const;

private:
    explicit Poller(FileDescriptor epoll) : epoll_(std::move(epoll)) {}

    FileDescriptor epoll_;
};

}  // namespace npushmem
