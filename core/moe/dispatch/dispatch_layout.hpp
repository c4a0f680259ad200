// SPDX-License-Identifier: BSD-3-Clause
// The symmetric memory of a dispatch. Every PE has the same layout, so an offset computed here is valid in every PE's
// copy. (R ranks, C = capacity in rows.)
//
//   counts(0) ... counts(R-1)     one 128-byte line each; word 0: the last epoch whose record that rank has put here
//   arrived(0) ... arrived(R-1)   one line each; word 0: the last epoch whose rows from that rank are all here; word 1:
//                                 the last epoch whose replies that rank has written into its own memory; word 2, with
//                                 an audit: the last epoch whose replies that rank has fetched, or whose slots at its
//                                 relays; word 3: the last epoch whose rows that rank has all got from other groups
//                                 (row_fan_out.hpp)
//   record(0, 0) ... record(0, R-1)   each rank's DispatchRecord of even epochs, and its rows per expert
//   record(1, 0) ... record(1, R-1)   the same of odd epochs
//   mapped                        one row per rank: a bit for each rank that this rank's kernels can access; never
//                                 changes
//   slots                         C of uint32: for each row of x, token * top_k + k at the rank that sent it
//   choices                       one row per rank: for each row of x, the top_k choices of its token; else empty
//   x                             C rows: the input of the experts of this PE
//   canary                        128 bytes that no rank writes after set-up
//
// Packed: the rows of an expert, rank after rank, are contiguous, and those of each expert begin at a multiple of its
// alignment. So a rank needs the counts of all ranks before it puts a row. Fixed: each rank has room for max_tokens
// rows at each expert, so a rank puts rows at once, then its record, and `counts` is not used.
//
// Each line and each record has one writer, the rank in its index, and one reader, the owner of the memory.
//
// Packed, one x is enough, and calls need neither clearing nor a barrier between them: a rank puts rows of epoch e into
// x of q only after it has seen q's record of epoch e, and q publishes that record only in its call e, which releases
// the old x. Two records are needed and enough: let p write its record of epoch e + 2 at q. p has returned from epoch e
// + 1, so it has seen q's record of that epoch. q published it only after it returned from epoch e, so after its last
// read of p's record of e. For the same reason no word here runs more than one epoch ahead of its reader.
//
// Fixed, there are two of slots, choices and x, for even and for odd epochs: let p put rows of epoch e + 2 at q. p has
// returned from epoch e + 1, so it has seen q's signal of that epoch, which q sends in its call e + 1, which releases
// the x of e.
//
// One row per rank: other ranks may copy rows and read slots of epoch e in the memory of q, their relay
// (row_fan_out.hpp). They have done so before their record of the next epoch, packed, or their signal of it, fixed. A
// rank puts no row over these before it has seen that of every rank, not only that of q.
//
// A cached call sends rows with the places of an earlier call. Its records have no counts, and neither slots nor
// choices travel. combine_backward puts weights in the place of the slots, and answers there, or in the place of the
// choices, with the weights' gradients. Replies stay until all have fetched them: a rank signals its next call only
// after it has, and no row of that call arrives here before all ranks have signalled it. (An audit clears the slots
// earlier.)
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/host_facts.hpp"
#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/element.hpp"
#include "core/moe/common/rank_agreement.hpp"

namespace npushmem::moe {

// routes: by a routing of its own. cached: by that of an earlier call. gradients: likewise, with weights and replies.
enum class DispatchKind : std::uint64_t { routes, cached, gradients };

// Its rank writes the whole record. int32 [experts] follow it: the rank's number of rows for each expert of the layer.
struct DispatchRecord {
    std::int32_t refused = 0;        // code with which the rank rejects its own arguments; 0: it accepts them
    std::array<char, 228> reason{};  // text of that rejection, terminated
    DispatchKind kind = DispatchKind::routes;
    RoutingId cached;  // of a cached call: the routing by which its rows travel
};
static_assert(sizeof(DispatchRecord) == 256);

// Where the rows of an expert begin in x.
class ExpertRows {
public:
    // Of CombineConfig::transport.
    static constexpr ExpertRows of(const CombineConfig& transport) {
        return transport.capacity == fixed_slots ? fixed(transport.expert_alignment, transport.max_tokens)
                                                 : ExpertRows(transport.expert_alignment);
    }
    // Packed.
    constexpr explicit ExpertRows(std::int32_t alignment = 1) : alignment_(static_cast<std::uint64_t>(alignment)) {}
    // Fixed.
    static constexpr ExpertRows fixed(std::int32_t alignment, std::int64_t max_tokens) {
        ExpertRows rows(alignment);
        rows.of_rank_ = static_cast<std::uint64_t>(max_tokens);
        return rows;
    }

    [[nodiscard]] constexpr bool is_fixed() const { return of_rank_ != 0; }
    // Fixed: rows of x from the first row of the expert on.
    [[nodiscard]] constexpr std::uint64_t of_rank(std::int32_t rank) const {
        return of_rank_ * static_cast<std::uint64_t>(rank);
    }
    // Where an expert's rows may begin if those of the expert before end at `row`.
    [[nodiscard]] constexpr std::uint64_t next(std::uint64_t row) const {
        return alignment_ == 1 ? row : rounded_up(row, alignment_);  // without a division
    }
    // Fixed: where the next expert's rows begin if this one's begin at `first`.
    [[nodiscard]] constexpr std::uint64_t next_fixed(std::uint64_t first, std::int32_t ranks) const {
        return next(first + of_rank(ranks));
    }

private:
    std::uint64_t alignment_;
    std::uint64_t of_rank_ = 0;
};

class DispatchLayout {
public:
    static constexpr std::uint64_t line = 128;

    // `choices`: that travel with each row.
    constexpr DispatchLayout(std::int32_t ranks, std::int32_t experts, Rows capacity, Bytes row,
                             std::int32_t choices = 0, ExpertRows expert_rows = ExpertRows())
        : ranks_(ranks),
          experts_(experts),
          capacity_(capacity),
          row_(row),
          choices_(choices),
          expert_rows_(expert_rows) {}
    // Of a configuration with a capacity.
    static DispatchLayout of(const CombineConfig& config, std::int32_t ranks);

    [[nodiscard]] constexpr std::int32_t ranks() const { return ranks_; }
    [[nodiscard]] constexpr std::int32_t experts() const { return experts_; }
    [[nodiscard]] constexpr Rows capacity() const { return capacity_; }
    [[nodiscard]] constexpr Bytes row_bytes() const { return row_; }
    [[nodiscard]] constexpr std::uint64_t choices_per_row() const { return number(choices_); }
    [[nodiscard]] constexpr const ExpertRows& expert_rows() const { return expert_rows_; }

    [[nodiscard]] constexpr Bytes counts(std::int32_t source) const { return Bytes{line} * number(source); }
    [[nodiscard]] constexpr Bytes arrived(std::int32_t source) const { return Bytes{line} * number(ranks_ + source); }
    [[nodiscard]] constexpr Bytes replied(std::int32_t source) const { return arrived(source) + Bytes{8}; }
    [[nodiscard]] constexpr Bytes fetched(std::int32_t source) const { return arrived(source) + Bytes{16}; }
    [[nodiscard]] constexpr Bytes relayed(std::int32_t source) const { return arrived(source) + Bytes{24}; }
    [[nodiscard]] constexpr Bytes record_bytes() const {
        return aligned_up(Bytes{sizeof(DispatchRecord) + sizeof(std::int32_t) * number(experts_)}, line);
    }
    [[nodiscard]] constexpr Bytes record(std::uint64_t epoch, std::int32_t source) const {
        return Bytes{line} * number(2 * ranks_) + record_bytes() * ((epoch & 1U) * number(ranks_) + number(source));
    }
    [[nodiscard]] constexpr Bytes mapped() const { return record(0, 2 * ranks_); }
    [[nodiscard]] constexpr Bytes mapped_bytes() const {
        return aligned_up(Bytes{choices_ == 0 ? 0 : (number(ranks_) + 7) / 8}, line);
    }
    [[nodiscard]] constexpr Bytes slots(std::uint64_t epoch = 0) const {
        return mapped() + mapped_bytes() + slots_bytes() * buffer(epoch);
    }
    [[nodiscard]] constexpr Bytes choices(std::uint64_t epoch = 0) const {
        return slots() + slots_bytes() * buffers() + choices_bytes() * buffer(epoch);
    }
    [[nodiscard]] constexpr Bytes x(std::uint64_t epoch = 0) const {
        return slots() + (slots_bytes() + choices_bytes()) * buffers() + x_bytes() * buffer(epoch);
    }
    [[nodiscard]] constexpr Bytes canary() const { return x() + all_x(); }
    [[nodiscard]] constexpr Bytes all_x() const { return x_bytes() * buffers(); }
    // Of slots, choices and x.
    [[nodiscard]] constexpr std::uint64_t buffers() const { return expert_rows_.is_fixed() ? 2 : 1; }
    [[nodiscard]] constexpr Bytes total() const { return canary() + Bytes{line}; }

private:
    static constexpr std::uint64_t number(std::int32_t value) { return static_cast<std::uint64_t>(value); }
    [[nodiscard]] constexpr std::uint64_t buffer(std::uint64_t epoch) const { return epoch % buffers(); }
    [[nodiscard]] constexpr Bytes slots_bytes() const {
        return aligned_up(bytes_of(capacity_, Bytes{sizeof(std::uint32_t)}), line);
    }
    [[nodiscard]] constexpr Bytes choices_bytes() const {
        return aligned_up(bytes_of(capacity_, Bytes{sizeof(Choice)}) * choices_per_row(), line);
    }
    [[nodiscard]] constexpr Bytes x_bytes() const { return aligned_up(bytes_of(capacity_, row_), line); }

    std::int32_t ranks_;
    std::int32_t experts_;
    Rows capacity_;
    Bytes row_;
    std::int32_t choices_;
    ExpertRows expert_rows_;
};

// Results of the kernels, in private memory of this PE. Core 0 writes all of them.
struct DispatchTables {
    std::byte* record = nullptr;        // layout.record_bytes(): this rank's record; the host fills the DispatchRecord
    std::uint32_t* order = nullptr;     // [choices] slots of this rank's rows, by expert, inside that by slot
    std::uint64_t* begins = nullptr;    // [experts + 1] where in `order` each expert's rows begin
    std::uint64_t* starts = nullptr;    // [experts] where in x of its holder this rank's rows for the expert begin
    std::uint64_t* totals = nullptr;    // [ranks] rows that each rank receives
    std::uint64_t* accepted = nullptr;  // 1: no rank rejects, and all rows fit; 0: no row moves
    std::int32_t* offset_table = nullptr;  // [local experts, ranks] of the combine of the received rows
    std::int32_t* length_table = nullptr;  // same
};

// Arguments of the kernels. All of it must stay unchanged until the launch ends.
struct DispatchWork {
    const std::byte* in = nullptr;          // [tokens] rows
    const std::int32_t* experts = nullptr;  // [choices] = [tokens, top_k], checked; -1: none
    std::uint64_t choices = 0;
    const Choice* row_choices = nullptr;  // [rows, layout.choices_per_row()] in the order of the rows; or null
    std::int32_t top_k = 1;
    ExpertPlacement placement{1, 1};
    const std::uint8_t* host_served = nullptr;  // [ranks] 1: the host sends to it; null: none
    // In the order of the rows, 1: the rank copies the row from its relay, only slot and choices travel; null: none.
    const std::uint8_t* through_relays = nullptr;
    std::byte* region = nullptr;  // this PE's copy of the symmetric memory
    DispatchLayout layout{1, 1, Rows{0}, Bytes{1}};
    std::uint64_t epoch = 0;
    bool cached = false;                  // `order`, begins, starts and totals are those of an earlier call
    const std::uint32_t* tags = nullptr;  // cached: travel in the place of the slots, in the same order; or null
    bool accepts = true;                  // false: this rank rejects its arguments, and sends no rows
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
    [[nodiscard]] const std::uint32_t* slots_to_send() const { return cached ? tags : tables.order; }
    // Bytes of the record that travel.
    [[nodiscard]] std::size_t record_bytes() const {
        return cached ? sizeof(DispatchRecord) : layout.record_bytes().value();
    }
    // Addresses in this PE's copy.
    [[nodiscard]] std::byte* x() const { return region + layout.x(epoch).value(); }
    [[nodiscard]] std::uint32_t* slots() const {
        return reinterpret_cast<std::uint32_t*>(region + layout.slots(epoch).value());
    }
    [[nodiscard]] Choice* choices_here() const {
        return reinterpret_cast<Choice*>(region + layout.choices(epoch).value());
    }
    // The counts that follow a record.
    static std::int32_t* counts_of(std::byte* record) {
        return reinterpret_cast<std::int32_t*>(record + sizeof(DispatchRecord));
    }
};

}  // namespace npushmem::moe
