// What a rank tells the others when its call was refused or failed, so that nobody waits for it.
#pragma once

#include <cstdint>

namespace npushmem::moe {

// Added to a signal, a ring's head or a ring's tail by the rank that writes it, once, when it aborts. Larger than all
// numbers that occur, so it ends every wait for "at least"; and what the rank has done before still counts: a call that
// got all it needs from that rank ends well.
constexpr std::uint64_t abort_bit = std::uint64_t{1} << 63;

constexpr bool is_aborted(std::uint64_t word) { return (word & abort_bit) != 0; }
// The number without it.
constexpr std::uint64_t without_abort_bit(std::uint64_t word) { return word & ~abort_bit; }

inline bool abort_received(const std::uint64_t* word) {
    // Acquire: pairs with the addition of abort_bit, before which its rank wrote its record.
    return is_aborted(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

}  // namespace npushmem::moe
