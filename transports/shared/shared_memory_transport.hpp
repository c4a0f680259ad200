// Peers of the same host, through shared memory: the runtime loads, stores and does atomics itself, or lets this
// transport do it.
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
    // Windows that lie in the region's mapping, which belongs to the caller, must have been released.
    Code deregister_memory(std::uint64_t region) override;
    // A peer's memory that lies in a mapping which this PE has registered needs no system call: its address is
    // computed. Anything else is mapped through the peer's descriptor.
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;

private:
    // A registered piece of memory, with the whole mapping that it lies in.
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
    std::uint64_t start_time_;  // of this process, in clock ticks since the machine started
    npushmem_host_id host_;
    std::uint64_t last_region_ = 0;
    std::map<std::uint64_t, Region> regions_;
};

}  // namespace npushmem
