// SPDX-License-Identifier: BSD-3-Clause
// What a job should have reported about its fault.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/stress/storm/job.hpp"

namespace npushmem::storm {

// Sentences, one for each defect; empty: all is well.
// Why a defect of this job has a cause outside npushmem or one that is listed as open; empty: neither. Known defects
// are counted and do not fail the storm.
std::string_view known_cause(const Fault& fault, const JobResult& result);

std::vector<std::string> judge(const Fault& fault, const JobResult& result);

}  // namespace npushmem::storm
