// SPDX-License-Identifier: BSD-3-Clause
// An npushmem program for the launcher's tests. Its argument names the part that it plays:
//     whole        init, a barrier, finalize
//     waiting      init; PE 0 reports "ready" and pauses, the others report "ready" and wait for it in a barrier
//     early        PE 1 exits with status 3 before init, the others wait for it in init
//     absent       PE 1 returns before init, the others call it
//     lingering    PE 0 reports "ready" and pauses, the others do so and wait for it in init; when PE 1 is killed, a
//                  tenth of a second passes between the end of its sockets and the moment in which it can be reaped
//     lingering-6  the same by npushmemx_init_attr, and exit status 6 when that fails
//     global-exit  PE 1 calls npushmem_global_exit(5), the others wait in a barrier
//     forgetful    PE 1 exits with status 0 after init and without finalize, the others wait in a barrier
//     counted      a hundred barriers; reports what has been counted of them
//     mistaken     a put to a PE that does not exist, after which the program goes on and returns 0
//     early-put    the same before init
//     asked        the same, and the program asks for the failure       cleared  it forgets the failure unasked
//     returned     calls that return their failures
//     refused      PE 0 calls another collective than the others (with NPUSHMEM_CHECK=1)
//     collectives  two collectives fail, and the program ignores their codes
//     asked-collectives  the same, and the program asks for the failures
//     last-words   PE 1 makes the mistake and is killed
//     on-signal    reports "ready", makes the mistake at SIGUSR1, reports "made", waits for another SIGUSR1
#include <npushmem.h>
#include <npushmemx.h>

#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
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
    npushmem_uint64_atomic_add(last, after.last_arrivals, 0);
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

void absent() {
    if (run_test::variable("NPUSHMEM_PE") != "1") npushmem_init();
}

// The kernel closes what was opened last first, and waits a moment for each of these.
void open_slow_descriptors() {
    constexpr int count = 60;
    for (int i = 0; i < count; ++i) (void)::inotify_add_watch(::inotify_init1(IN_CLOEXEC), "/", IN_DELETE_SELF);
}

void lingering(bool by_attributes) {
    const std::string pe = run_test::variable("NPUSHMEM_PE");
    if (pe == "1") open_slow_descriptors();
    report("ready");
    while (pe == "0") ::pause();
    npushmemx_init_attr_t attributes = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    if (!by_attributes) npushmem_init();
    if (by_attributes && npushmemx_init_attr(0, &attributes) != 0) std::_Exit(6);
}

// Starts and ends as if all were well, whatever became of the start.
void careless() {
    npushmem_init();
    report("pe-" + std::to_string(npushmem_my_pe()) + "-of-" + std::to_string(npushmem_n_pes()));
    npushmem_barrier_all();
    npushmem_finalize();
}

void make_mistake() { npushmem_long_p(nullptr, 1, 99); }

void mistaken() {
    npushmem_init();
    make_mistake();
    npushmem_finalize();
}

void early_put() {
    make_mistake();
    npushmem_init();
    npushmem_finalize();
}

void asked() {
    npushmem_init();
    make_mistake();
    make_mistake();
    report("code-" + std::to_string(npushmemx_last_error(nullptr)));
    npushmem_finalize();
}

void cleared() {
    npushmem_init();
    make_mistake();
    npushmemx_clear_error();
    report("code-" + std::to_string(npushmemx_last_error(nullptr)));
    npushmem_finalize();
}

void returned() {
    npushmem_init();
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    const bool shown =
        npushmem_align(3, 64) == nullptr && npushmem_ptr(&team, 0) == nullptr && npushmemx_heap_info(nullptr) != 0;
    report(shown ? "shown" : "hidden");
    npushmem_finalize();
}

void refused() {
    npushmem_init();
    if (npushmem_my_pe() == 0)
        npushmem_sync_all();
    else
        npushmem_barrier_all();
    npushmem_finalize();
}

// Calls two collectives that fail and ignores their codes, or asks for the failures.
void collectives(bool asks) {
    npushmem_init();
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, nullptr, nullptr, 1);
    npushmem_team_sync(NPUSHMEM_TEAM_INVALID);
    if (asks) npushmemx_last_error(nullptr);
    npushmem_finalize();
}

void last_words() {
    npushmem_init();
    if (npushmem_my_pe() == 1) {
        make_mistake();
        ::raise(SIGKILL);
    }
    npushmem_barrier_all();
}

void on_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    npushmem_init();
    report("ready");
    int got = 0;
    sigwait(&set, &got);
    make_mistake();
    report("made");
    sigwait(&set, &got);
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
    if (part == "absent") absent();
    if (part == "lingering") lingering(false);
    if (part == "lingering-6") lingering(true);
    if (part == "global-exit") global_exit();
    if (part == "careless") careless();
    if (part == "reused") reused();
    if (part == "forgetful") forgetful();
    if (part == "mistaken") mistaken();
    if (part == "early-put") early_put();
    if (part == "asked") asked();
    if (part == "cleared") cleared();
    if (part == "returned") returned();
    if (part == "refused") refused();
    if (part == "collectives") collectives(false);
    if (part == "asked-collectives") collectives(true);
    if (part == "last-words") last_words();
    if (part == "on-signal") on_signal();
    return 0;
}
