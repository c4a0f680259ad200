// What a rank tells the others when its call was refused or failed, so that nobody waits for it.
#pragma once

#include <cstdint>

namespace npushmem::moe {

// Added to a signal, a ring's head or a ring's tail by the rank that writes it, once, when it gives up. Larger than all
// numbers that occur, so it ends every wait for "at least"; and what the rank has done before still counts: a call that
// got all it needs from that rank ends well.
constexpr std::uint64_t gave_up = std::uint64_t{1} << 63;

constexpr bool has_given_up(std::uint64_t word) { return (word & gave_up) != 0; }
// The number without it.
constexpr std::uint64_t number_in(std::uint64_t word) { return word & ~gave_up; }

inline bool says_given_up(const std::uint64_t* word) {
    // Acquire: pairs with the addition of gave_up, before which its rank wrote its note.
    return has_given_up(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

}  // namespace npushmem::moe
