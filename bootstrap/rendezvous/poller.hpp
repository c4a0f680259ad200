// An epoll descriptor with 64-bit keys, level-triggered.
#pragma once

#include <cstdint>
#include <vector>

#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/file_descriptor.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

class Poller {
public:
    struct Event {
        std::uint64_t key;
        bool readable;  // or closed: reading tells
        bool writable;
    };

    static Result<Poller> make();

    [[nodiscard]] int fd() const { return handle_.get(); }

    Status watch(int fd, std::uint64_t key, bool for_writing = false);
    // Changes what a watched descriptor is watched for.
    void modify(int fd, std::uint64_t key, bool for_reading, bool for_writing);
    // A descriptor that is closed leaves by itself; this is for those that live on.
    void remove(int fd);
    // Up to a few hundred events; none at the deadline or after a signal.
    std::vector<Event> wait(Deadline deadline);

private:
    explicit Poller(FileDescriptor handle) : handle_(std::move(handle)) {}

    FileDescriptor handle_;
};

}  // namespace npushmem::rendezvous
