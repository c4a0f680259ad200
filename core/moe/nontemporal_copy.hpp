// Copies whose stores go past the caches. They halve the traffic of a payload that nobody on this core reads again
// soon: an ordinary store first reads the line it is going to overwrite.
#pragma once

#include <cstddef>

namespace npushmem::moe {

// As memcpy. The stores are ordered with nothing until nontemporal_fence().
void copy_nontemporal(std::byte* target, const std::byte* source, std::size_t bytes);

// Everything this thread copied with copy_nontemporal is visible before any store that follows.
void nontemporal_fence();

}  // namespace npushmem::moe
