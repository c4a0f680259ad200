// SPDX-License-Identifier: BSD-3-Clause
// The memory of peers: its keys, which PEs request of each other over their connections.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/connection_manager.hpp"
#include "transports/verbs/local_memory.hpp"
#include "transports/verbs/messages.hpp"
#include "transports/verbs/ud_handshake.hpp"

namespace npushmem::verbs {

// A PE's description of its memory, sent at start in this layout.
struct RegionInfo {
    std::uint64_t region = 0;  // number at the owner
    std::uint64_t bytes = 0;
    std::uint64_t chunk_bytes = 0;
};

// Empty when the bytes do not describe memory, or describe so much that the table of its keys could exhaust memory.
inline std::optional<RegionInfo> region_info_from(std::span<const std::byte> bytes) {
    constexpr std::uint64_t max_chunks = 1ULL << 28;  // 1 TiB in the smallest chunks
    const auto info = plain_from<RegionInfo>(bytes);
    const bool sound = info && info->bytes > 0 && info->chunk_bytes > 0 &&
                       info->bytes / info->chunk_bytes < max_chunks &&
                       info->bytes <= std::numeric_limits<std::uint64_t>::max() - info->chunk_bytes;
    return sound ? info : std::nullopt;
}

// The memory of a peer and the keys of its chunks, which are requested at first use.
class RemoteMemory {
public:
    RemoteMemory(int pe, const RegionInfo& info)
        : pe_(pe), info_(info), chunks_((info.bytes + info.chunk_bytes - 1) / info.chunk_bytes) {}

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] std::uint64_t region() const { return info_.region; }
    [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t bytes) const {
        return offset <= info_.bytes && bytes <= info_.bytes - offset;
    }
    struct Piece {
        std::uint32_t rkey;
        std::uint64_t bytes;  // covered by this key, from the offset on
    };
    // Requires a known key.
    [[nodiscard]] Piece piece_at(std::uint64_t offset) const {
        return {chunks_[offset / info_.chunk_bytes].rkey, info_.chunk_bytes - offset % info_.chunk_bytes};
    }
    // Fast path: the key of a range within one chunk, if it is known and no failure is pending. 0: use the slow path.
    [[nodiscard]] std::uint32_t key_of(std::uint64_t offset, std::uint64_t bytes) const {
        if (!has(offset, bytes) || !failures_.empty()) return 0;
        const Chunk& chunk = chunks_[offset / info_.chunk_bytes];
        const bool whole = bytes <= info_.chunk_bytes - offset % info_.chunk_bytes;
        return whole && chunk.state == Chunk::State::known ? chunk.rkey : 0;
    }
    // True when all keys of the range are known. Calls `request` with each chunk whose key must be requested.
    template <class Request>
    bool has_keys(std::uint64_t offset, std::uint64_t bytes, Request&& request) {
        bool all = true;
        for (std::uint64_t i = offset / info_.chunk_bytes; i * info_.chunk_bytes < offset + bytes; ++i) {
            if (chunks_[i].state == Chunk::State::known) [[likely]]
                continue;
            all = false;
            if (chunks_[i].state == Chunk::State::unknown) request(i);
            chunks_[i].state = Chunk::State::requested;
        }
        return all;
    }
    void set_key(std::uint64_t chunk, std::uint32_t rkey) {
        if (chunk < chunks_.size()) chunks_[chunk] = {rkey, Chunk::State::known};
    }
    // The owner could not provide the key. The next operation that needs it reports the failure; the one after that
    // requests the key again.
    void set_failure(std::uint64_t chunk, Status why) {
        if (chunk >= chunks_.size() || chunks_[chunk].state == Chunk::State::known) return;
        chunks_[chunk].state = Chunk::State::unknown;
        failures_.insert_or_assign(chunk, std::move(why));
    }
    std::optional<Status> take_failure(std::uint64_t offset, std::uint64_t bytes) {
        const auto found = failures_.lower_bound(offset / info_.chunk_bytes);
        if (found == failures_.end() || found->first * info_.chunk_bytes >= offset + bytes) return std::nullopt;
        return std::move(failures_.extract(found).mapped());
    }

private:
    struct Chunk {
        enum class State : std::uint8_t { unknown, requested, known };
        std::uint32_t rkey = 0;
        State state = State::unknown;
    };
    int pe_;
    RegionInfo info_;
    std::vector<Chunk> chunks_;
    std::map<std::uint64_t, Status> failures_;  // by chunk
};

enum class Prepared { yes, not_yet, failed };

// Operations that have failed after the wire accepted them. The next progress reports them.
class DeferredFailures {
public:
    [[nodiscard]] bool empty() const { return failed_.empty(); }
    Prepared add(network::WireContext& context, Status why) {
        failed_.push_back({&context, std::move(why)});
        return Prepared::failed;
    }
    // True when it reported some.
    bool report(network::WireListener& listener) {
        if (failed_.empty()) return false;
        const auto failed = std::exchange(failed_, {});
        for (const auto& each : failed) listener.completed(*each.context, each.why.code(), each.why.message());
        return true;
    }

private:
    struct Failed {
        network::WireContext* context;
        Status why;
    };
    std::vector<Failed> failed_;
};

// The memory of peers that this PE has imported. Requests its keys, and answers the requests of peers.
class KeyExchange {
public:
    // The arguments outlive this object. `last_error`: the reason why ConnectionManager has found no connection.
    KeyExchange(LocalMemory& memory, ConnectionManager& manager, MessageSender& messages, DeferredFailures& failures,
                const std::string& last_error)
        : memory_(memory), manager_(manager), messages_(messages), failures_(failures), last_error_(last_error) {}

    // Returns the key of the memory.
    std::uint64_t import(int pe, const RegionInfo& info) {
        remote_.push_back(std::make_unique<RemoteMemory>(pe, info));
        return remote_.size();
    }
    void release(std::uint64_t key) { remote_[key - 1].reset(); }
    [[nodiscard]] RemoteMemory& at(std::uint64_t key) { return *remote_[key - 1]; }
    // Requires `prepare`.
    [[nodiscard]] RemoteWord word_at(const network::RemoteAddress& place) {
        return {place.base + place.offset, at(place.key).piece_at(place.offset).rkey};
    }
    // Requests the keys of the range that are not known. Prepared::failed: the operation fails, in DeferredFailures.
    Prepared prepare(Connection& connection, const network::RemoteAddress& place, std::uint64_t bytes,
                     network::WireContext& context);
    // Handles a control message that the connection has received.
    void handle(Connection& connection, std::uint32_t kind, std::span<const std::byte> bytes);

private:
    [[nodiscard]] KeyReply reply_to(const KeyRequest& request);

    LocalMemory& memory_;
    ConnectionManager& manager_;
    MessageSender& messages_;
    DeferredFailures& failures_;
    const std::string& last_error_;
    // By key. Keys are not reused, so that late replies are ignored.
    std::vector<std::unique_ptr<RemoteMemory>> remote_;
};

}  // namespace npushmem::verbs
