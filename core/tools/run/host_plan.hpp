// Which emulated host a PE lives on: a pure function.
#pragma once

#include "core/tools/run/options.hpp"

namespace npushmem::run {

// 0..nodes-1. Needs 0 <= pe < npes and 1 <= nodes <= npes. Sizes of hosts differ by at most one; with `block`, the
// first npes % nodes hosts are the larger ones and hold consecutive PEs.
int emulated_host_of(int pe, int npes, int nodes, MapBy map_by);

}  // namespace npushmem::run
