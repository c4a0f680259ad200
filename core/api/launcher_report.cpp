#include "core/api/launcher_report.hpp"

#include <fmt/core.h>

#include <string_view>

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

}  // namespace npushmem::api
