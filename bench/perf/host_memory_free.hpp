// How much memory this host can still give.
#pragma once

#include <cstdint>

namespace npushmem::perf {

// Bytes, as the system estimates them; 0 when it does not say. Other PEs may see another moment's value.
std::uint64_t host_memory_free();

}  // namespace npushmem::perf
