// SPDX-License-Identifier: BSD-3-Clause
// The start of the runtime.
#pragma once

#include <memory>

#include "core/base/config.hpp"
#include "core/runtime/runtime.hpp"
#include "core/runtime/start_request.hpp"

namespace npushmem {

// Collective. On failure everything made so far is destroyed, the other PEs are informed, and the status names the
// cause.
Result<std::unique_ptr<Runtime>> start_runtime(Config config, Sources& sources, const StartRequest& request);

}  // namespace npushmem
