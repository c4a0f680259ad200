// SPDX-License-Identifier: BSD-3-Clause
// Operations of a random sequence, as values that can be removed from it and printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace npushmem::contract::sequence {

enum class Kind {
    put,
    get,
    atomic,
    put_signal,
    put_strided,
    fence,
    quiet,
    wait,  // until the token of an earlier operation is complete
    poll,  // tests such a token once
    create_queue,
    destroy_queue,
    register_region,  // of PE `pe`
    deregister_region,
    import_region,  // of PE `to` by PE `pe`
    release_region,
};

// Each PE has a main region, which all import at the start, and may have a second one.
constexpr int main_region = 0;
constexpr int second_region = 1;
constexpr int region_count = 2;
constexpr std::uint64_t region_bytes[region_count] = {1024, 512};
// Operations leave these bytes at both ends of a region alone, so that a write beyond the target shows.
constexpr std::uint64_t region_guard = 64;

// Each PE has queue 0 from the start.
constexpr int queue_count = 3;

struct Operation {
    Kind kind = Kind::quiet;
    int id = 0;  // unique in the sequence; not a position, because operations may be removed
    int pe = 0;  // the origin
    int queue = 0;
    int to = 0;
    int region = main_region;  // of `to`
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;   // of the data of a put, get or put_signal, or of a block of a put_strided
    std::uint64_t count = 1;   // of blocks
    std::uint64_t stride = 0;  // at the target, between the beginnings of blocks; at least `bytes`
    std::uint64_t salt = 0;    // of the pattern that is put
    bool has_token = false;
    int waits_for = 0;           // wait and poll: the id of an earlier operation of this PE
    std::uint8_t operation = 0;  // NPUSHMEM_ATOMIC_x or NPUSHMEM_SIGNAL_x
    std::uint8_t width = 8;      // of an atomic
    std::uint64_t operand = 0;   // of an atomic, or the signal
    std::uint64_t compare = 0;
    int signal_region = main_region;
    std::uint64_t signal_offset = 0;
};

using Sequence = std::vector<Operation>;

// The number of blocks that the operation transfers; 1 for all kinds but put_strided.
std::uint64_t blocks_of(const Operation& op);
// The source of a put, put_signal or put_strided: its blocks, one after another.
std::vector<std::byte> data_of(const Operation& op);
// Whether the atomic operation returns the old value.
bool fetches(std::uint8_t operation);
// The number of bytes that the operation fetches; 0 for the others.
std::uint64_t fetched_bytes(const Operation& op);

// "0x1f".
std::string hex(std::uint64_t value);
// "main", "second".
const char* region_name(int region);
// "pe(0).put(queue 1, to 2, main + 64, 17 bytes of pattern 93);  // 12"
std::string text_of(const Operation& op);
// One operation per line.
std::string text_of(const Sequence& operations);

// The operations and widths that one PE offers to another.
struct Offer {
    int from = 0;
    int to = 0;
    std::uint64_t capabilities = 0;
    std::uint32_t atomic_32 = 0;
    std::uint32_t atomic_64 = 0;
};

// The PEs of a sequence. Without an offer a pair has no operation.
struct World {
    int npes = 0;
    std::vector<Offer> offers;

    // Null when the PE does not reach the other.
    [[nodiscard]] const Offer* find(int from, int to) const;
};

}  // namespace npushmem::contract::sequence
