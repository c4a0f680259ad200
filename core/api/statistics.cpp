#include "core/api/access.hpp"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

extern "C" int npushmemx_get_statistics(npushmemx_statistics_t* statistics) {
    Runtime* up = runtime();
    const Status done = up == nullptr           ? not_running()
                        : statistics == nullptr ? Status{Code::argument, "statistics is NULL"}
                                                : Status{};
    if (!done.ok()) {
        fail_returned(__func__, done);
        return static_cast<int>(done.code());
    }
    const PeStatistics now = up->statistics();
    *statistics = {.barriers = now.meetings,
                   .timed_barriers = now.timed,
                   .barrier_time = now.nanoseconds,
                   .longest_barrier = now.longest,
                   .came_last = now.last,
                   .late_time = now.late_nanoseconds,
                   .waits = now.waits,
                   .spins = now.spins,
                   .yields = now.yields,
                   .sleeps = now.sleeps,
                   .parks = now.parks,
                   .life_looks = now.asks,
                   .wakes = now.wakes};
    return 0;
}
