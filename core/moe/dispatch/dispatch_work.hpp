// What the kernels of a dispatch work on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/moe/copy_route.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"
#include "core/moe/placement.hpp"

namespace npushmem::moe {

// What the kernels find out, in memory of this PE alone. Core 0 writes all of it.
struct DispatchTables {
    std::byte* record = nullptr;        // layout.record_bytes(): this rank's record; the host fills the DispatchRecord
    std::uint32_t* order = nullptr;     // [choices] slots of this rank's rows, by expert, inside that by slot
    std::uint64_t* begins = nullptr;    // [experts + 1] where in `order` each expert's rows begin
    std::uint64_t* starts = nullptr;    // [experts] where in x of its holder this rank's rows for the expert begin
    std::uint64_t* totals = nullptr;    // [ranks] rows that come to each rank
    std::uint64_t* accepted = nullptr;  // 1: nobody has refused, and all rows fit; 0: not a row moves
    std::int32_t* offset_table = nullptr;  // [local experts, ranks] of the combine of what has come here
    std::int32_t* length_table = nullptr;  // same
};

// All of it must stay unchanged until the launch has ended.
struct DispatchWork {
    const std::byte* in = nullptr;          // [tokens] rows
    const std::int32_t* experts = nullptr;  // [choices] = [tokens, top_k], checked; -1: none
    std::uint64_t choices = 0;
    std::int32_t top_k = 1;
    ExpertPlacement placement{1, 1};
    const std::uint8_t* host_served = nullptr;  // [ranks] 1: the host sends to it (remote_dispatch.hpp); null: none
    std::byte* region = nullptr;                // this PE's copy of the symmetric memory
    DispatchLayout layout{1, 1, Rows{0}, Bytes{1}};
    std::uint64_t epoch = 0;
    CopyRoute route = CopyRoute::direct;
    std::chrono::nanoseconds timeout{0};  // per rank waited for; 0: the device's
    DispatchTables tables;

    [[nodiscard]] bool is_host_served(std::int32_t rank) const {
        return host_served != nullptr && host_served[rank] != 0;
    }
    [[nodiscard]] std::uint64_t* word(Bytes offset) const {
        return reinterpret_cast<std::uint64_t*>(region + offset.value());
    }
    [[nodiscard]] const std::byte* row_of(std::uint32_t slot) const {
        return in + layout.row_bytes().value() * (slot / static_cast<std::uint32_t>(top_k));
    }
    // The counts behind a record.
    static std::int32_t* counts_of(std::byte* record) {
        return reinterpret_cast<std::int32_t*>(record + sizeof(DispatchRecord));
    }
};

}  // namespace npushmem::moe
