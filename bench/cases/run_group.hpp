// SPDX-License-Identifier: BSD-3-Clause
// Runs the cases of one group on this process's job.
#pragma once

#include <string_view>
#include <vector>

#include "bench/engine/engine.hpp"
#include "bench/engine/progress_line.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::bench {

// Collective over all PEs, with equal arguments, between init and finalize. PE 0 has the results. A case is a part of
// `progress`, and a point is a step.
Result<std::vector<PointResult>> run_group(std::string_view group, Engine& engine, ProgressLine& progress);

}  // namespace npushmem::bench
