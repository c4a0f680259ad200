// SPDX-License-Identifier: BSD-3-Clause
// The reports that one call of npushmem-info prints, as values, and their two forms: text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/tools/info/doctor.hpp"
#include "core/tools/info/jobs.hpp"
#include "core/tools/info/reports.hpp"
#include "core/tools/info/summary.hpp"

namespace npushmem::info {

// Empty members were not requested.
struct Reports {
    bool version = false;
    const Config* variables = nullptr;
    std::optional<PluginReport> plugins;
    std::optional<BarrierReport> barriers;
    std::optional<TopologyReport> topology;
    std::optional<std::vector<Check>> checks;
    std::optional<Summary> summary;
    std::optional<JobsReport> jobs;
};

std::string describe(const Reports& reports);

// One JSON object with a newline. Its members are `version` and, as requested: `variables`, `plugins`, `barriers`,
// `topology`, `doctor`, `summary` and `jobs`. Values are those of the text; sizes are in bytes. Bytes that are no UTF-8
// are replaced, and the values of variables that grant access to a job are null.
std::string to_json(const Reports& reports);

}  // namespace npushmem::info
