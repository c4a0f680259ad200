// Checks of a caller's buffers by address.
#pragma once

#include <cstddef>

#include "core/moe/units.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

struct Extent {
    const char* name;
    const std::byte* begin;
    Bytes size;
};

// Refuses null (unless empty), and an address that is not a multiple of the element's size.
Status check_address(const Extent& extent, ElementSize element);

// Refuses extents that share a byte.
Status check_apart(const Extent& a, const Extent& b);

}  // namespace npushmem::moe
