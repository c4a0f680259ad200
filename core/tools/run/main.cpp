// npushmem-run: starts the PEs of a job, on this host or on several.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <variant>

#include "core/tools/run/allocation.hpp"
#include "core/tools/run/carrier.hpp"
#include "core/tools/run/exit_codes.hpp"
#include "core/tools/run/fd.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/part.hpp"
#include "core/tools/run/start_job.hpp"

namespace {

int leave(const npushmem::run::EarlyExit& exit) {
    fmt::print(exit.status == 0 ? stdout : stderr, "{}", exit.text);
    return exit.status;
}

// Descriptors 0 to 2 must be in use: any other file that got one of these numbers would be taken for a standard stream.
void fill_standard_streams() {
    int fd = 0;
    do fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= 2);
    const npushmem::run::Fd surplus(fd);
}

}  // namespace

int main(int argc, char** argv, char** environment) {
    namespace run = npushmem::run;
    fill_standard_streams();
    if (argc == 2 && std::string_view(argv[1]) == "--part") return run::run_part(environment);
    auto options = run::parse_options({argv + 1, argv + argc});
    if (const auto* exit = std::get_if<run::EarlyExit>(&options)) return leave(*exit);
    if (std::get<run::Options>(options).carry) return run::run_carrier(std::get<run::Options>(options), environment);
    if (const auto found = run::use_allocation(std::get<run::Options>(options), npushmem::ProcessEnvironment(),
                                               npushmem::system_files());
        !found.ok())
        return leave({run::exit_usage, fmt::format("npushmem-run: {}\n", found.message())});
    auto plan = run::prepare_job(std::get<run::Options>(options), environment);
    if (const auto* exit = std::get_if<run::EarlyExit>(&plan)) return leave(*exit);
    return run::run_job(std::get<run::Options>(options), std::get<run::JobPlan>(std::move(plan)));
}
