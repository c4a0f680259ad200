// SPDX-License-Identifier: BSD-3-Clause
// Memory of the program that transports register once, for all transfers from and to it as the local side.
//
// Only transports whose NIC pins memory (verbs) gain by it: they use a registration that contains the local side of a
// transfer. Others copy local memory, or their libraries cache registrations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/remote/remote_peers.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Any thread may call it.
class LocalBuffers {
public:
    // `pinning`: the transports that register the memory. They and `peers` outlive this.
    LocalBuffers(std::vector<NamedTransport> pinning, RemotePeers& peers)
        : transports_(std::move(pinning)), peers_(peers) {}
    LocalBuffers(const LocalBuffers&) = delete;
    LocalBuffers& operator=(const LocalBuffers&) = delete;
    ~LocalBuffers() { remove_all(); }

    // Code::argument: no memory, memory that this process cannot read and write, a buffer that overlaps a registered
    // one. A failure changes nothing.
    Status add(void* address, std::uint64_t bytes);
    // Code::argument: no buffer is registered with this address.
    Status remove(const void* address);
    void remove_all();

private:
    struct Buffer {
        std::uint64_t bytes = 0;
        std::vector<std::uint64_t> regions;  // one for each transport
    };

    // Both with lock_ held.
    [[nodiscard]] Status check(const void* address, std::uint64_t bytes) const;
    void deregister(const Buffer& buffer);

    std::vector<NamedTransport> transports_;
    RemotePeers& peers_;
    std::mutex lock_;
    std::map<std::uintptr_t, Buffer> buffers_;  // by address; under lock_
};

}  // namespace npushmem
