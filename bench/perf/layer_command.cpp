#include "bench/perf/layer_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>

#include "bench/perf/host_memory_free.hpp"
#include "bench/perf/report_text.hpp"
#include "npushmemx.h"

namespace npushmem::perf {
namespace {

// The least that any PE sees, so that all decide alike.
Result<Place> place_of(const Job& job, int receive_buffers) {
    npushmemx_heap_info_t heap{};
    if (npushmemx_heap_info(&heap) != 0) return library_failure();
    const auto all = job.all({static_cast<double>(heap.largest_free), static_cast<double>(host_memory_free())});
    if (!all.ok()) return all.status();
    std::array<double, 2> least{all.value()[0], all.value()[1]};
    for (std::size_t i = 0; i < all.value().size(); ++i) least[i % 2] = std::min(least[i % 2], all.value()[i]);
    return Place{job.pe(), job.pes(), static_cast<std::uint64_t>(least[0]), static_cast<std::uint64_t>(least[1]),
                 receive_buffers};
}

Status write(const std::string& path, const std::string& text) {
    if (path.empty()) return {};
    std::ofstream file(path);
    file << text;
    file.close();
    return file ? Status{} : Status{Code::system, fmt::format("cannot write '{}'", path)};
}

}  // namespace

CLI::App* LayerCommand::declare(CLI::App& program) {
    CLI::App* app = program.add_subcommand(name_, description_);
    declare_options(*app, options_);
    return app;
}

int LayerCommand::run() {
    auto job = Job::start();
    if (!job.ok()) return fail(job.status());
    const Status status = run_case(*job.value());
    return status.ok() ? EXIT_SUCCESS : fail(status, job.value()->pe());
}

int LayerCommand::fail(const Status& status, int pe) const {
    // Failures that concern all PEs reach all; one voice is enough for those.
    if (pe == 0 || status.code() == Code::timeout)
        std::cerr << "npushmem-perf " << name_ << ": " << status.message() << '\n';
    return EXIT_FAILURE;
}

Status LayerCommand::run_case(const Job& job) {
    const auto place = place_of(job, receive_buffers_);
    if (!place.ok()) return place.status();
    const auto c = make_combine_case(options_, place.value());
    if (!c.ok()) return c.status();
    const auto outcome = measure(job, c.value());
    if (!outcome.ok()) return outcome.status();
    if (outcome.value().difference) return {Code::state, difference_text(*outcome.value().difference)};
    return job.speaks() ? show(outcome.value()) : Status{};
}

Status LayerCommand::show(const Outcome& outcome) const {
    std::cout << outcome.report << std::flush;
    const Status csv = write(options_.csv, outcome.csv);
    return csv.ok() ? write(options_.svg, outcome.svg) : csv;
}

}  // namespace npushmem::perf
