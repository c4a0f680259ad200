// A peer's memory and the keys of its chunks, which the peer is asked for when they are needed for the first time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::verbs {

// What a PE says of its memory at start; sent as it is.
struct RegionInfo {
    std::uint64_t region = 0;  // the owner's number
    std::uint64_t bytes = 0;
    std::uint64_t chunk_bytes = 0;
};

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
        std::uint64_t bytes;  // from the offset on that this key is good for
    };
    // Its key is known.
    [[nodiscard]] Piece piece_at(std::uint64_t offset) const {
        return {chunks_[offset / info_.chunk_bytes].rkey, info_.chunk_bytes - offset % info_.chunk_bytes};
    }
    // The key of a range that lies in one chunk, when it is known and nothing is to be told of it: what most operations
    // need. 0: look closer.
    [[nodiscard]] std::uint32_t key_of(std::uint64_t offset, std::uint64_t bytes) const {
        if (!has(offset, bytes) || !failures_.empty()) return 0;
        const Chunk& chunk = chunks_[offset / info_.chunk_bytes];
        const bool whole = bytes <= info_.chunk_bytes - offset % info_.chunk_bytes;
        return whole && chunk.state == Chunk::State::known ? chunk.rkey : 0;
    }
    // Are all keys of the range known? `request` is called with the number of each chunk that has to be requested.
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
    // The owner could not give it. Told to the next operation that needs it; the one after that asks again.
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

}  // namespace npushmem::verbs
