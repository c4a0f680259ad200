// Registered memory of this PE, and the keys of peers' memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "npushmem/plugin/transport.hpp"
#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

// A pool of registered buffers of equal size.
class BufferPool {
public:
    // `domain` outlives the pool.
    static Result<std::unique_ptr<BufferPool>> make(ProtectionDomain& domain, std::size_t count, std::size_t bytes) {
        std::unique_ptr<BufferPool> out(new BufferPool(count, bytes));
        auto made = domain.register_memory(out->memory_.data(), out->memory_.size(), IBV_ACCESS_LOCAL_WRITE);
        if (!made.ok()) return made.status();
        out->registered_ = std::move(made).value();
        for (std::size_t i = count; i > 0; --i) out->free_.push_back(out->at(i - 1));
        return out;
    }

    [[nodiscard]] std::byte* at(std::size_t index) { return memory_.data() + index * bytes_; }
    [[nodiscard]] std::size_t index_of(const std::byte* buffer) const {
        return static_cast<std::size_t>(buffer - memory_.data()) / bytes_;
    }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint32_t lkey() const { return registered_->lkey; }
    // Null when all are in use.
    [[nodiscard]] std::byte* take() {
        if (free_.empty()) return nullptr;
        std::byte* const out = free_.back();
        free_.pop_back();
        return out;
    }
    void release(std::byte* buffer) { free_.push_back(buffer); }

private:
    BufferPool(std::size_t count, std::size_t bytes) : bytes_(bytes), memory_(count * bytes) {}

    std::size_t bytes_;
    std::vector<std::byte> memory_;
    std::vector<std::byte*> free_;
    Owned<ibv_mr> registered_;
};

// This PE's memory that the NIC may access. It is registered in chunks, each at its first use, because registered
// memory is locked and a program uses only a small part of its heap.
class LocalMemory {
public:
    // `domain` outlives this object.
    LocalMemory(ProtectionDomain& domain, std::uint64_t chunk_bytes) : domain_(domain), chunk_bytes_(chunk_bytes) {}

    std::uint64_t add(void* base, std::uint64_t bytes);
    void remove(std::uint64_t number);
    [[nodiscard]] std::uint64_t chunk_bytes() const { return chunk_bytes_; }

    // True when a region contains the range.
    [[nodiscard]] bool has(const void* begin, std::uint64_t bytes) const { return find(begin, bytes) != nullptr; }
    // Registers the chunks of the range that are not registered. Requires `has`.
    Status prepare(const void* begin, std::uint64_t bytes);
    struct Piece {
        std::uint32_t lkey;
        std::uint64_t bytes;  // covered by this key, from the address on
    };
    // Requires `prepare`.
    [[nodiscard]] Piece piece_at(const void* begin) const;
    // The key of the chunk for peers. Code::range when it does not exist.
    Result<std::uint32_t> rkey(std::uint64_t number, std::uint64_t chunk);

private:
    struct Region {
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::vector<Owned<ibv_mr>> chunks;
    };
    [[nodiscard]] const Region* find(const void* begin, std::uint64_t bytes) const;
    Status register_chunk(Region& region, std::uint64_t chunk);

    ProtectionDomain& domain_;
    std::uint64_t chunk_bytes_;
    std::map<std::uint64_t, Region> regions_;
    std::uint64_t last_ = 0;
};

// The memory of a peer and the keys of its chunks, which are requested at first use.

// A PE's description of its memory, sent at start in this layout.
struct RegionInfo {
    std::uint64_t region = 0;  // number at the owner
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

}  // namespace npushmem::verbs
