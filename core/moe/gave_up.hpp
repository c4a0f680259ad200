// What a rank tells the others instead of a number when its call was refused or failed, so that nobody waits for it.
#pragma once

#include <cstdint>

namespace npushmem::moe {

// The value of a signal, a ring's head or a ring's tail whose rank has given up. Larger than all numbers that occur,
// so it ends every wait for "at least".
constexpr std::uint64_t gave_up = ~std::uint64_t{0};

}  // namespace npushmem::moe
