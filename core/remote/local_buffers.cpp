// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/local_buffers.hpp"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "core/memory/address_mappings.hpp"

namespace npushmem {

Status LocalBuffers::check(const void* address, std::uint64_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (address == nullptr || bytes == 0 || bytes > ~begin)
        return {Code::argument, fmt::format("{} bytes at {} are no memory", bytes, address)};
    const auto after = buffers_.lower_bound(begin + bytes);
    if (after != buffers_.begin())
        if (const auto& [there, other] = *std::prev(after); there + other.bytes > begin)
            return {Code::argument, fmt::format("{} bytes at {} overlap the {} bytes at {:#x} that are registered "
                                                "already; unregister these first",
                                                bytes, address, other.bytes, there)};
    return uniform_mapping(address, bytes).status();
}

Status LocalBuffers::add(void* address, std::uint64_t bytes) {
    const std::lock_guard guard(lock_);
    if (Status fine = check(address, bytes); !fine.ok()) return fine;
    npushmem_memory memory{};
    memory.struct_size = sizeof memory;
    memory.fd = -1;
    memory.base = memory.mapping = address;
    memory.bytes = memory.mapping_bytes = bytes;
    Buffer buffer{bytes, {}};
    for (const NamedTransport& each : transports_) {
        auto registered = [&] {
            const auto setup = peers_.lock_setup();
            return each.transport->register_memory(memory);
        }();
        if (!registered.ok()) {
            deregister(buffer);
            return registered.status().within(
                fmt::format("transport {} cannot register {} bytes at {}", each.name, bytes, address));
        }
        buffer.regions.push_back(registered.value().region);
    }
    buffers_.emplace(reinterpret_cast<std::uintptr_t>(address), std::move(buffer));
    return {};
}

Status LocalBuffers::remove(const void* address) {
    const std::lock_guard guard(lock_);
    const auto found = buffers_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == buffers_.end())
        return {Code::argument, fmt::format("no buffer is registered at {}; pass the address that was given to "
                                            "npushmemx_buffer_register",
                                            address)};
    deregister(found->second);
    buffers_.erase(found);
    return {};
}

void LocalBuffers::remove_all() {
    const std::lock_guard guard(lock_);
    for (const auto& [address, buffer] : buffers_) deregister(buffer);
    buffers_.clear();
}

void LocalBuffers::deregister(const Buffer& buffer) {
    const auto setup = peers_.lock_setup();
    for (std::size_t i = 0; i < buffer.regions.size(); ++i)
        (void)transports_[i].transport->deregister_memory(buffer.regions[i]);
}

}  // namespace npushmem
