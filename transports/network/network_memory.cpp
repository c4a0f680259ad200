// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/network_memory.hpp"

#include <fmt/format.h>

#include <utility>

#include "transports/network/address_codec.hpp"

namespace npushmem::network {

Result<RegisteredMemory> NetworkMemory::register_memory(const npushmem_memory& memory) {
    if (memory.base == nullptr || memory.bytes == 0)
        return Status{Code::argument, "cannot register memory: the address is null or the size is 0"};
    auto made = wire_->register_memory(memory.base, memory.bytes);
    if (!made.ok())
        return made.status().within(
            fmt::format("cannot register {} bytes at {} with {}", memory.bytes, memory.base, wire_->traits().name));
    auto* const base = static_cast<std::byte*>(memory.base);
    const std::uint64_t region = regions_.insert({base, memory.bytes, made.value().number});
    Bytes handle = encode(
        NetworkHandle{region, reinterpret_cast<std::uintptr_t>(base), memory.bytes, std::move(made.value().key)});
    if (handle.size() <= NPUSHMEM_HANDLE_MAX) return RegisteredMemory{region, std::move(handle)};
    wire_->deregister_memory(made.value().number);
    regions_.erase(region);
    return Status{Code::unsupported, fmt::format("a memory handle of {} has {} bytes, the maximum is {}",
                                                 wire_->traits().name, handle.size(), NPUSHMEM_HANDLE_MAX)};
}

Code NetworkMemory::deregister_memory(std::uint64_t region) {
    const RegionTable::Region* const found = regions_.find(region);
    if (found == nullptr) return Code::argument;
    wire_->deregister_memory(found->wire_number);
    regions_.erase(region);
    return Code::ok;
}

Result<std::uint64_t> NetworkMemory::import_memory(int pe, std::span<const std::byte> bytes) {
    const auto handle = decode_handle(bytes);
    if (!handle.ok()) return handle.status();
    if (!peers_.contains(pe) || !peers_.is_added(pe))
        return Status{Code::state, fmt::format("cannot use memory of PE {} before it is connected", pe)};
    auto key = wire_->import_key(pe, handle.value().key);
    if (!key.ok()) return key.status().within(fmt::format("cannot use the memory of {}", peers_.name_of(pe)));
    return remotes_.insert({pe, handle.value().region, handle.value().base, handle.value().bytes, key.value()});
}

Code NetworkMemory::release_memory(std::uint64_t remote) {
    const auto removed = remotes_.remove(remote);
    if (!removed) return Code::argument;
    wire_->release_key(removed->key);
    return Code::ok;
}

}  // namespace npushmem::network
