#include "bench/perf/run_in_job.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

namespace npushmem::perf {
namespace {

int fail(const char* subcommand, const std::string& who, const Status& status) {
    std::cerr << fmt::format("npushmem-perf {}: {}{}\n", subcommand, who, status.message());
    return EXIT_FAILURE;
}

}  // namespace

int run_in_job(const char* subcommand, const std::function<Status(const Job&)>& body) {
    const auto job = Job::start();
    if (!job.ok()) return fail(subcommand, "", job.status());
    const Status status = body(*job.value());
    return status.ok() ? EXIT_SUCCESS : fail(subcommand, fmt::format("PE {}: ", job.value()->pe()), status);
}

}  // namespace npushmem::perf
