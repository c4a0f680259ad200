// SPDX-License-Identifier: BSD-3-Clause
// npushmem-run: starts the PEs of a job, on this host or on several.
#include <fmt/format.h>

#include <csignal>
#include <string_view>
#include <variant>

#include "core/base/streams.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/explore_job.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/placement.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "core/tools/run/start_job.hpp"

namespace {

int print_and_exit(const npushmem::run::EarlyExit& exit) {
    exit.status == 0 ? npushmem::write_output(exit.text) : npushmem::write_error(exit.text);
    return npushmem::checked_status("npushmem-run", exit.status);
}

}  // namespace

int main(int argc, char** argv, char** environment) {
    namespace run = npushmem::run;
    npushmem::prepare_standard_streams();
    (void)std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, the system does not report how a process ended
    if (argc == 2 && std::string_view(argv[1]) == "--host-agent") return run::run_host_agent(environment);
    auto options = run::parse_options({argv + 1, argv + argc});
    if (const auto* exit = std::get_if<run::EarlyExit>(&options)) return print_and_exit(*exit);
    if (std::get<run::Options>(options).agent_client)
        return run::run_agent_client(std::get<run::Options>(options), environment);
    if (const auto found = run::use_allocation(std::get<run::Options>(options), npushmem::ProcessEnvironment(),
                                               npushmem::system_files());
        !found.ok())
        return print_and_exit({run::exit_usage, fmt::format("npushmem-run: {}\n", found.message())});
    if (run::needs_scheduler(std::get<run::Options>(options)))
        return run::run_scheduled_job(std::get<run::Options>(std::move(options)), environment);
    auto plan = run::prepare_job(std::get<run::Options>(options), environment);
    if (const auto* exit = std::get_if<run::EarlyExit>(&plan)) return print_and_exit(*exit);
    return run::run_job(std::get<run::Options>(options), std::get<run::JobPlan>(std::move(plan)));
}
