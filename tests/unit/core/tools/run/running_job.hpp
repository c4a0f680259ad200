// SPDX-License-Identifier: BSD-3-Clause
// Jobs and events for the tests of JobState.
#pragma once

#include <chrono>
#include <optional>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_state.hpp"

namespace npushmem::run {

inline constexpr Clock::time_point start{};

inline ExitRecord exited(int pe, int status) { return {pe, 100 + pe, TerminationKind::exited, status}; }
inline ExitRecord killed(int pe, int signal) { return {pe, 100 + pe, TerminationKind::killed, signal}; }

inline JobState running_job(int npes, std::optional<std::chrono::milliseconds> limit = std::nullopt,
                            Scope scope = Scope::job) {
    JobState state(npes, start, limit, scope);
    for (int pe = 0; pe < npes; ++pe) state.pe_started();
    return state;
}

// PE 1 cannot go on.
inline constexpr ExitRequest cannot_go_on{1, 1, true};

}  // namespace npushmem::run
