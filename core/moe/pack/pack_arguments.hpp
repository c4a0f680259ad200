// What the seed's sender works on: rows of x, scattered by expert, are gathered into one contiguous region per
// destination rank, ready to send.
//
//   x:          | expert 0: rank 0 rows, rank 1 rows, ... | expert 1: rank 0 rows, ... | ...
//   tx_buffer:  | rank 0: rows of expert 0, of expert 1, ... | to 32 bytes | rank 1: ... | ...
//
// A region holds max_send_len rows; behind the last row of a destination nothing is written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/copy_route.hpp"
#include "core/moe/table_column.hpp"
#include "core/moe/units.hpp"

namespace npushmem::moe {

// All of it must stay unchanged until the launch has ended.
struct PackArguments {
    const std::byte* x = nullptr;
    std::byte* tx_buffer = nullptr;
    FragmentTables tables;
    Bytes row;                        // of any length
    Rows max_send_len;                // capacity of one rank's region
    std::byte* ordered = nullptr;     // plan 1 only: as large as tx_buffer
    std::uint64_t* packed = nullptr;  // or null: one line of packed_line words per rank, whose first is set when the
    std::uint64_t call = 0;           // rank's region is complete, to this
    CopyRoute route = CopyRoute::staged;

    static constexpr std::size_t packed_line = 16;

    [[nodiscard]] constexpr Bytes region_bytes() const { return aligned_up(bytes_of(max_send_len, row), 32); }
    [[nodiscard]] constexpr Bytes region(std::int32_t rank) const {
        return region_bytes() * static_cast<std::uint64_t>(rank);
    }
    [[nodiscard]] constexpr Bytes tx_bytes() const { return region(tables.num_ranks); }
};

}  // namespace npushmem::moe
