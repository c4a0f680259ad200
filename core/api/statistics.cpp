#include "core/api/access.hpp"
#include "core/api/teams.hpp"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

namespace {

npushmemx_statistics_t to_public(const PeStatistics& now) {
    return {.barriers = now.barriers,
            .timed_barriers = now.timed,
            .barrier_time = now.nanoseconds,
            .longest_barrier = now.longest,
            .last_arrivals = now.last,
            .last_arrival_delay = now.late_nanoseconds,
            .waits = now.waits,
            .wait_time = now.wait_nanoseconds,
            .spins = now.spins,
            .yields = now.yields,
            .sleeps = now.sleeps,
            .parks = now.parks,
            .liveness_checks = now.liveness_checks,
            .wakes = now.wakes};
}

Status null_statistics() { return {Code::argument, "statistics is NULL"}; }

}  // namespace

extern "C" {

int npushmemx_get_statistics(npushmemx_statistics_t* statistics) {
    Runtime* up = runtime();
    if (up == nullptr) return report_code(__func__, not_running());
    if (statistics == nullptr) return report_code(__func__, null_statistics());
    *statistics = to_public(up->statistics());
    return 0;
}

int npushmemx_team_get_statistics(npushmem_team_t team, npushmemx_statistics_t* statistics) {
    const auto found = team_of(team);
    if (!found.ok()) return report_code(__func__, found.status());
    if (statistics == nullptr) return report_code(__func__, null_statistics());
    Runtime* up = runtime();
    const bool world = found.value() == &up->teams().world();
    *statistics = to_public(world ? up->statistics() : read_statistics(found.value()->counts()));
    return 0;
}

}  // extern "C"
