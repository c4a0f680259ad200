// The symmetric memory of a dispatch. Every PE has the same layout, so an offset computed here is valid in every PE's
// copy. (R ranks, C = capacity in rows.)
//
//   counts(0) ... counts(R-1)     one 128-byte line each; word 0: the last epoch whose record that rank has put here
//   arrived(0) ... arrived(R-1)   one line each; word 0: the last epoch whose rows from that rank are all here
//   record(0, 0) ... record(0, R-1)   what each rank publishes in even epochs: a DispatchRecord, and its rows per
//   expert record(1, 0) ... record(1, R-1)   in odd epochs slots                         C of uint32: for each row of
//   x, token * top_k + k at the rank that it came from x                             C rows, without gaps: what the
//   experts of this PE work on canary                        128 bytes that nobody writes after set-up
//
// Each line and each record has one writer, the rank it is named for, and one reader, the owner.
//
// Why one x is enough, and why nothing is cleared and no barrier is needed between calls. A rank puts rows of epoch e
// into x of q only when it has seen q's record of epoch e, and q shows that only in its call e, with which it has given
// up what x held. Why there are two records: let p write its record of epoch e + 2 at q. p has returned from epoch e +
// 1, so it has seen q's record of that; q showed it only after it returned from epoch e, so after its last look at p's
// record of e. For the same reason no word here runs more than one epoch ahead of its reader.
#pragma once

#include <array>
#include <cstdint>

#include "core/moe/units.hpp"

namespace npushmem::moe {

// Written whole by its rank. Behind it, int32 [experts]: how many rows the rank has for each expert of the layer.
struct DispatchRecord {
    std::int32_t refused = 0;        // Code with which the rank refuses its own arguments, 0 if it does not
    std::array<char, 252> reason{};  // and the text, terminated
};
static_assert(sizeof(DispatchRecord) == 256);

class DispatchLayout {
public:
    static constexpr std::uint64_t line = 128;

    constexpr DispatchLayout(std::int32_t ranks, std::int32_t experts, Rows capacity, Bytes row)
        : ranks_(ranks), experts_(experts), capacity_(capacity), row_(row) {}

    [[nodiscard]] constexpr std::int32_t ranks() const { return ranks_; }
    [[nodiscard]] constexpr std::int32_t experts() const { return experts_; }
    [[nodiscard]] constexpr Rows capacity() const { return capacity_; }
    [[nodiscard]] constexpr Bytes row_bytes() const { return row_; }

    [[nodiscard]] constexpr Bytes counts(std::int32_t source) const { return Bytes{line} * number(source); }
    [[nodiscard]] constexpr Bytes arrived(std::int32_t source) const { return Bytes{line} * number(ranks_ + source); }
    [[nodiscard]] constexpr Bytes record_bytes() const {
        return aligned_up(Bytes{sizeof(DispatchRecord) + sizeof(std::int32_t) * number(experts_)}, line);
    }
    [[nodiscard]] constexpr Bytes record(std::uint64_t epoch, std::int32_t source) const {
        return Bytes{line} * number(2 * ranks_) + record_bytes() * ((epoch & 1U) * number(ranks_) + number(source));
    }
    [[nodiscard]] constexpr Bytes slots() const { return record(0, 2 * ranks_); }
    [[nodiscard]] constexpr Bytes x() const {
        return slots() + aligned_up(bytes_of(capacity_, Bytes{sizeof(std::uint32_t)}), line);
    }
    [[nodiscard]] constexpr Bytes canary() const { return x() + aligned_up(bytes_of(capacity_, row_), line); }
    [[nodiscard]] constexpr Bytes total() const { return canary() + Bytes{line}; }

private:
    static constexpr std::uint64_t number(std::int32_t value) { return static_cast<std::uint64_t>(value); }

    std::int32_t ranks_;
    std::int32_t experts_;
    Rows capacity_;
    Bytes row_;
};

}  // namespace npushmem::moe
