// SPDX-License-Identifier: BSD-3-Clause
// Transport to peers of the same host, through shared memory. The runtime accesses the memory by itself or calls this
// transport.
#pragma once

#include <map>
#include <memory>

#include "npushmem/plugin/mapped_transport.hpp"
#include "transports/shared/memory_handle.hpp"

namespace npushmem {

class SharedMemoryTransport final : public MappedTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    SharedMemoryTransport(const npushmem_transport_params& params, std::uint64_t start_time)
        : pe_(params.pe), process_(params.process_id), start_time_(start_time), host_(params.host) {}

    Reach reach(const npushmem_peer& peer) override;
    // The memory must be backed by a file.
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    // The mapping belongs to the caller. Release all windows that lie in it first.
    Code deregister_memory(std::uint64_t region) override;
    // Makes no system call when the peer's memory lies in a mapping that this PE has registered: it computes the
    // address. Otherwise it maps the memory through the peer's descriptor.
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;

private:
    // A registered range of memory, with the whole mapping that contains it.
    struct Region {
        std::uint64_t device;
        std::uint64_t inode;
        std::byte* mapping;
        std::uint64_t mapping_offset;  // within the file
        std::uint64_t mapping_bytes;

        [[nodiscard]] bool covers(const shared_memory::MemoryHandle& handle) const;
    };

    static Result<Region> examine(const npushmem_memory& memory);
    [[nodiscard]] const Region* region_covering(const shared_memory::MemoryHandle& handle) const;

    int pe_;
    int process_;
    std::uint64_t start_time_;  // of this process, in clock ticks since boot
    npushmem_host_id host_;
    std::uint64_t last_region_ = 0;
    std::map<std::uint64_t, Region> regions_;
};

}  // namespace npushmem
