// SPDX-License-Identifier: BSD-3-Clause
// The memory of a network transport: regions of this PE that peers may use, and regions that it has imported.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "npushmem/plugin/slot_table.hpp"
#include "transports/network/peer_monitor.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

// A region of a peer.
struct RemoteRegion {
    int pe = -1;
    std::uint64_t region = 0;  // the owner's number
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t key = 0;  // the wire's

    [[nodiscard]] RemoteAddress at(const LaneId& lane_id, std::uint64_t offset) const {
        return {lane_id, key, base, offset};
    }
    [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t count) const {
        return offset <= bytes && count <= bytes - offset;
    }
};

// Registers memory with the wire and encodes its handles; imports handles of peers. The transport's lock guards it.
class NetworkMemory {
public:
    NetworkMemory(const PeerMonitor& peers, const std::unique_ptr<Wire>& wire) : peers_(peers), wire_(wire) {}

    Result<RegisteredMemory> register_memory(const npushmem_memory& memory);
    Code deregister_memory(std::uint64_t region);
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> bytes);
    Code release_memory(std::uint64_t remote);

    // Null when the number is unknown.
    [[nodiscard]] const RemoteRegion* find_remote(std::uint64_t remote) { return remotes_.find(remote); }
    // The regions that peers may name in messages.
    [[nodiscard]] const RegionTable& regions() const { return regions_; }

private:
    const PeerMonitor& peers_;
    const std::unique_ptr<Wire>& wire_;
    RegionTable regions_;
    SlotTable<RemoteRegion> remotes_;
};

}  // namespace npushmem::network
