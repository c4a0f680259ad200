#include "core/api/launcher_report.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/api/library.hpp"
#include "core/base/launcher_channel.hpp"

namespace npushmem::api {

namespace {

bool write_line(std::string_view verb, int status, std::string_view rest = {}) {
    return LauncherChannel::of_process().request(
        fmt::format("{} {} {}{}\n", verb, LauncherChannel::own_pe(), status, rest));
}

}  // namespace

bool report_exit(int status, bool openshmem) { return write_line("exit", status, openshmem ? " shmem" : ""); }

bool report_job_failure(int status) { return write_line("failed", status); }

void report_failed_calls(int by) { (void)LauncherChannel::of_process().count_failed_calls(by); }

namespace {

void end_local_pes(const Runtime& runtime) {
    const int me = runtime.my_pe();
    for (const int pe : runtime.job().layout().pes_of(runtime.job().layout().host_of(me))) {
        const ProcessId process = runtime.job().record(pe).process_id();
        if (pe != me && is_alive(process)) kill(process.pid, SIGTERM);
    }
}

}  // namespace

void exit_job(Runtime* runtime, int status) {
    if (runtime != nullptr) {
        // Reports to the launcher first, so that it does not take a PE that ends because of the abort for the cause.
        const bool reported = report_exit(status, uses_openshmem_names());
        runtime->job().abort(fmt::format("PE {} called npushmem_global_exit({})", runtime->my_pe(), status));
        if (!reported) end_local_pes(*runtime);
    }
    // Not exit(): other threads of this process may be inside the library.
    std::fflush(nullptr);
    _exit(status);
}

}  // namespace npushmem::api
