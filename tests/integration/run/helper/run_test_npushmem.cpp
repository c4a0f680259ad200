// An npushmem program for the launcher's tests. Its argument names the part that it plays:
//     whole        init, a barrier, finalize
//     waiting      init; PE 0 reports "ready" and pauses, the others report "ready" and wait for it in a barrier
//     early        PE 1 exits with status 3 before init, the others wait for it in init
//     global-exit  PE 1 calls npushmem_global_exit(5), the others wait in a barrier
//     forgetful    PE 1 exits with status 0 after init and without finalize, the others wait in a barrier
//     counted      a hundred barriers; reports what has been counted of them
#include <npushmem.h>
#include <npushmemx.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/integration/run/helper/reporting.hpp"

namespace {

using run_test::report;

void whole() {
    npushmem_init();
    report("n_pes-" + std::to_string(npushmem_n_pes()));
    npushmem_barrier_all();
    npushmem_finalize();
}

void counted() {
    npushmem_init();
    npushmemx_statistics_t before{};
    npushmemx_statistics_t after{};
    const int first = npushmemx_get_statistics(&before);
    for (int i = 0; i < 100; ++i) npushmem_barrier_all();
    const int second = npushmemx_get_statistics(&after);
    report("codes-" + std::to_string(first) + "-" + std::to_string(second));
    report("barriers-" + std::to_string(after.barriers - before.barriers));
    report("timed-" + std::to_string(after.timed_barriers - before.timed_barriers));
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, npushmem_n_pes(), nullptr, 0, &team);
    for (int i = 0; i < 30; ++i) npushmem_team_sync(team);
    npushmemx_team_get_statistics(team, &after);
    report("in-team-" + std::to_string(after.barriers) + "-" + std::to_string(after.timed_barriers));
    const bool timed = after.timed_barriers != 0;
    report(timed == (after.longest_barrier > 0) && after.barrier_time >= after.longest_barrier ? "times-fit"
                                                                                               : "times-differ");
    // One of them was last each time; who looks writes it down before it comes to the next meeting.
    npushmem_team_sync(team);
    npushmemx_team_get_statistics(team, &after);
    auto* last = static_cast<std::uint64_t*>(npushmem_calloc(1, sizeof(std::uint64_t)));
    npushmem_uint64_atomic_add(last, after.came_last, 0);
    npushmem_barrier_all();
    if (npushmem_my_pe() == 0) report("last-" + std::to_string(*last));
    npushmem_finalize();
}

void waiting() {
    npushmem_init();
    report("ready");
    while (npushmem_my_pe() == 0) ::pause();
    npushmem_barrier_all();
    report("left-barrier");
}

void early() {
    if (run_test::variable("NPUSHMEM_PE") == "1") std::_Exit(3);
    npushmem_init();
}

// Starts and ends as if all were well, whatever became of the start.
void careless() {
    npushmem_init();
    npushmem_finalize();
}

// The launcher's pipe is closed, and its number given to a file, before the start fails.
void reused() {
    const int pipe = std::atoi(run_test::variable("NPUSHMEM_LAUNCHER_FD").c_str());
    const int file = ::memfd_create("user", 0);
    if (file < 0 || ::dup2(file, pipe) != pipe) std::_Exit(9);
    npushmem_init();
    report("bytes-" + std::to_string(::lseek(pipe, 0, SEEK_END)));
}

void global_exit() {
    npushmem_init();
    if (npushmem_my_pe() == 1) npushmem_global_exit(5);
    npushmem_barrier_all();
}

void forgetful() {
    npushmem_init();
    if (npushmem_my_pe() == 1) std::_Exit(0);
    npushmem_barrier_all();
    report("left-barrier");
    std::_Exit(4);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string part = argc > 1 ? argv[1] : "whole";
    if (part == "whole") whole();
    if (part == "counted") counted();
    if (part == "waiting") waiting();
    if (part == "early") early();
    if (part == "global-exit") global_exit();
    if (part == "careless") careless();
    if (part == "reused") reused();
    if (part == "forgetful") forgetful();
    return 0;
}
