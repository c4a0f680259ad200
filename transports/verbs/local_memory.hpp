// Equal pieces of registered memory.
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

class BufferPool {
public:
    // `port` outlives the pool.
    static Result<std::unique_ptr<BufferPool>> make(OpenedPort& port, std::size_t count, std::size_t bytes) {
        std::unique_ptr<BufferPool> out(new BufferPool(count, bytes));
        auto made = port.register_memory(out->memory_.data(), out->memory_.size(), IBV_ACCESS_LOCAL_WRITE);
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
    // Null: all are in use.
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

// This PE's memory that the NIC may touch. It is registered in chunks, each when it is touched for the first time,
// since registered memory is locked: a heap is far larger than what a program uses of it.
class LocalMemory {
public:
    explicit LocalMemory(OpenedPort& port) : port_(port), chunk_bytes_(port.settings().chunk_bytes) {}

    std::uint64_t add(void* base, std::uint64_t bytes);
    void remove(std::uint64_t number);
    [[nodiscard]] std::uint64_t chunk_bytes() const { return chunk_bytes_; }

    // Does the range lie in one of them?
    [[nodiscard]] bool has(const void* begin, std::uint64_t bytes) const { return find(begin, bytes) != nullptr; }
    // Registers what of the range is not yet; `has` holds.
    Status prepare(const void* begin, std::uint64_t bytes);
    struct Piece {
        std::uint32_t lkey;
        std::uint64_t bytes;  // from the address on that this key is good for
    };
    // `prepare` has been called.
    [[nodiscard]] Piece piece_at(const void* begin) const;
    // What a peer names the chunk by. Code::range: there is none.
    Result<std::uint32_t> rkey(std::uint64_t number, std::uint64_t chunk);

private:
    struct Region {
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::vector<Owned<ibv_mr>> chunks;
    };
    [[nodiscard]] const Region* find(const void* begin, std::uint64_t bytes) const;
    Status register_chunk(Region& region, std::uint64_t chunk);

    OpenedPort& port_;
    std::uint64_t chunk_bytes_;
    std::map<std::uint64_t, Region> regions_;
    std::uint64_t last_ = 0;
};

// A peer's memory and the keys of its chunks, which the peer is asked for when they are needed for the first time.

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
