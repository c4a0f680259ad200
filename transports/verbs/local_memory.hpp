// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of this PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

}  // namespace npushmem::verbs
