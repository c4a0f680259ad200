// SPDX-License-Identifier: BSD-3-Clause
#include "transports/self/self_transport.hpp"

#include <fmt/format.h>

#include <cstring>

namespace npushmem {
namespace {

constexpr std::uint64_t handle_magic = 0x31464c45'534d504eU;  // "NPMSELF1"

}  // namespace

Result<std::unique_ptr<Transport>> SelfTransport::open(const Host&, const npushmem_transport_params& params) {
    return std::unique_ptr<Transport>(std::make_unique<SelfTransport>(params.pe));
}

Reach SelfTransport::reach(const npushmem_peer& peer) {
    if (peer.pe != pe_) return {0, 0, 0, "is another PE"};
    return {mapped_capabilities, all_atomics, all_atomics, "the PE itself"};
}

Result<RegisteredMemory> SelfTransport::register_memory(const npushmem_memory& memory) {
    if (memory.base == nullptr) return Status{Code::argument, "cannot register memory without an address"};
    const Handle handle{handle_magic, ++last_region_, pe_, 0};
    regions_.emplace(handle.region, Region{static_cast<std::byte*>(memory.base), memory.bytes});
    RegisteredMemory out{handle.region, Bytes(sizeof handle)};
    std::memcpy(out.handle.data(), &handle, sizeof handle);
    return out;
}

Code SelfTransport::deregister_memory(std::uint64_t region) {
    return regions_.erase(region) == 1 ? Code::ok : Code::argument;
}

Result<std::uint64_t> SelfTransport::import_memory(int pe, std::span<const std::byte> bytes) {
    Handle handle{};
    if (bytes.size() != sizeof handle)
        return Status{Code::protocol,
                      fmt::format("a memory handle of {} bytes is not a handle of transport 'self', which has {} bytes",
                                  bytes.size(), sizeof handle)};
    std::memcpy(&handle, bytes.data(), sizeof handle);
    if (handle.magic != handle_magic)
        return Status{Code::protocol, "the memory handle was not made by transport 'self'"};
    if (pe != pe_ || handle.pe != pe_)
        return Status{Code::unreachable,
                      fmt::format("PE {} cannot import memory of PE {} (handle of PE {}) over 'self', which "
                                  "reaches only the PE itself",
                                  pe_, pe, handle.pe)};
    const auto region = regions_.find(handle.region);
    if (region == regions_.end())
        return Status{Code::argument, fmt::format("memory region {} is not registered (any more)", handle.region)};
    return add_window({pe, region->second.base, region->second.bytes, nullptr});
}

}  // namespace npushmem
