// The size of the machine's pages.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace npushmem {

inline std::uint64_t page_bytes() {
    static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace npushmem
