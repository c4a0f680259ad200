// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/shared_memory_transport.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/shared/memory_handle.hpp"

namespace npushmem {
namespace {

// Without a given mapping, the memory is its own mapping.
npushmem_memory with_mapping(npushmem_memory memory) {
    if (memory.mapping != nullptr) return memory;
    memory.mapping = memory.base;
    memory.mapping_offset = memory.fd_offset;
    memory.mapping_bytes = memory.bytes;
    return memory;
}

bool lies_in_mapping(const npushmem_memory& m) {
    const auto base = reinterpret_cast<std::uintptr_t>(m.base);
    const auto mapping = reinterpret_cast<std::uintptr_t>(m.mapping);
    if (base < mapping || m.bytes > m.mapping_bytes || base - mapping > m.mapping_bytes - m.bytes) return false;
    return m.fd_offset >= m.mapping_offset && m.fd_offset - m.mapping_offset == base - mapping;
}

}  // namespace

Result<std::unique_ptr<Transport>> SharedMemoryTransport::open(const Host&, const npushmem_transport_params& given) {
    npushmem_transport_params params = given;
    params.process_id = ::getpid();
    const auto started = shared_memory::start_time_of(params.process_id);
    if (!started.ok()) return started.status().within("cannot read the start time of this process (is /proc mounted?)");
    return std::unique_ptr<Transport>(std::make_unique<SharedMemoryTransport>(params, started.value()));
}

Reach SharedMemoryTransport::reach(const npushmem_peer& peer) {
    if (std::string why_not = shared_memory::why_not_shareable(host_, peer.host); !why_not.empty())
        return {0, 0, 0, std::move(why_not)};
    return {mapped_capabilities, all_atomics, all_atomics, "same host, shared memory"};
}

Result<SharedMemoryTransport::Region> SharedMemoryTransport::examine(const npushmem_memory& memory) {
    if (memory.base == nullptr || memory.bytes == 0)
        return Status{Code::argument, "cannot share memory: the address is null or the size is 0"};
    if (memory.fd < 0)
        return Status{Code::argument, fmt::format("cannot share {} bytes at {} with other processes: no file backs the "
                                                  "memory",
                                                  memory.bytes, memory.base)};
    if (!lies_in_mapping(memory))
        return Status{Code::argument, fmt::format("{} bytes at {} (file offset {}) do not lie in the given mapping: "
                                                  "{} bytes at {} (file offset {})",
                                                  memory.bytes, memory.base, memory.fd_offset, memory.mapping_bytes,
                                                  memory.mapping, memory.mapping_offset)};
    struct stat facts {};
    if (::fstat(memory.fd, &facts) != 0)
        return Status{Code::argument, fmt::format("cannot share memory: descriptor {} is not an open file ({})",
                                                  memory.fd, std::strerror(errno))};
    return Region{facts.st_dev, facts.st_ino, static_cast<std::byte*>(memory.mapping), memory.mapping_offset,
                  memory.mapping_bytes};
}

Result<RegisteredMemory> SharedMemoryTransport::register_memory(const npushmem_memory& given) {
    const npushmem_memory memory = with_mapping(given);
    auto region = examine(memory);
    if (!region.ok()) return region.status();
    shared_memory::MemoryHandle handle{};
    handle.process = process_;
    handle.descriptor = memory.fd;
    handle.start_time = start_time_;
    handle.device = region.value().device;
    handle.inode = region.value().inode;
    handle.offset = memory.fd_offset;
    handle.bytes = memory.bytes;
    handle.host = host_;
    regions_.emplace(++last_region_, region.value());
    return RegisteredMemory{last_region_, shared_memory::encode(handle)};
}

Code SharedMemoryTransport::deregister_memory(std::uint64_t region) {
    return regions_.erase(region) == 1 ? Code::ok : Code::argument;
}

bool SharedMemoryTransport::Region::covers(const shared_memory::MemoryHandle& handle) const {
    return device == handle.device && inode == handle.inode && handle.offset >= mapping_offset &&
           handle.bytes <= mapping_bytes && handle.offset - mapping_offset <= mapping_bytes - handle.bytes;
}

const SharedMemoryTransport::Region* SharedMemoryTransport::region_covering(
    const shared_memory::MemoryHandle& handle) const {
    const auto found =
        std::find_if(regions_.begin(), regions_.end(), [&](const auto& entry) { return entry.second.covers(handle); });
    return found == regions_.end() ? nullptr : &found->second;
}

Result<std::uint64_t> SharedMemoryTransport::import_memory(int pe, std::span<const std::byte> bytes) {
    const auto decoded = shared_memory::decode(bytes);
    if (!decoded.ok()) return decoded.status();
    const shared_memory::MemoryHandle& handle = decoded.value();
    if (const std::string why_not = shared_memory::why_not_shareable(host_, handle.host); !why_not.empty())
        return Status{Code::unreachable, fmt::format("PE {} cannot map memory of PE {}: {}", pe_, pe, why_not)};
    if (const Region* region = region_covering(handle); region != nullptr)
        return add_window({pe, region->mapping + (handle.offset - region->mapping_offset), handle.bytes, nullptr});
    auto mapping = shared_memory::PeerMapping::make(handle);
    if (!mapping.ok()) return mapping.status().within(fmt::format("PE {} cannot map memory of PE {}", pe_, pe));
    std::byte* base = mapping.value()->base();
    return add_window({pe, base, handle.bytes, std::move(mapping).value()});
}

}  // namespace npushmem
