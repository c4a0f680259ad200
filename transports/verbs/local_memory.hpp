// This PE's memory that the NIC may touch. It is registered in chunks, each when it is touched for the first time,
// since registered memory is locked: a heap is far larger than what a program uses of it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

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

}  // namespace npushmem::verbs
