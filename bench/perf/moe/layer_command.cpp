// SPDX-License-Identifier: BSD-3-Clause
// Runs a subcommand about MoE layers.
#include "bench/perf/moe/layer_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>

#include "bench/moe/routing_file.hpp"
#include "bench/perf/moe/report_text.hpp"
#include "npushmemx.h"

namespace npushmem::perf {

// Free memory of this host in bytes, as the system estimates it; 0 if unknown. PEs may read different values.
std::uint64_t host_memory_free();

std::uint64_t host_memory_free() {
    std::ifstream file("/proc/meminfo");
    for (std::string name; file >> name; file.ignore(256, '\n')) {
        std::uint64_t kilobytes = 0;
        if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    }
    return 0;
}

namespace {

// The minimum over all PEs, so that all decide alike.
Result<JobResources> resources_of(const Job& job, int receive_buffers) {
    npushmemx_heap_info_t heap{};
    if (npushmemx_heap_info(&heap) != 0) return library_failure();
    const auto all = job.allgather({static_cast<double>(heap.largest_free), static_cast<double>(host_memory_free())});
    if (!all.ok()) return all.status();
    std::array<double, 2> least{all.value()[0], all.value()[1]};
    for (std::size_t i = 0; i < all.value().size(); ++i) least[i % 2] = std::min(least[i % 2], all.value()[i]);
    return JobResources{job.pe(), job.pes(), static_cast<std::uint64_t>(least[0]), static_cast<std::uint64_t>(least[1]),
                        receive_buffers};
}

constexpr int no_pe = -1;

// Collective. Returns the lowest PE for which the condition holds, or no_pe.
Result<int> lowest_pe_where(const Job& job, bool condition) {
    const auto all = job.allgather({condition ? 1.0 : 0.0});
    if (!all.ok()) return all.status();
    const auto found = std::ranges::find(all.value(), 1.0);
    return found == all.value().end() ? no_pe : static_cast<int>(found - all.value().begin());
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
    app->add_option("--quantize", quantize_, "Also measure rows of this type, with scales")
        ->check(CLI::IsMember({"e4m3", "e5m2", "int8"}));
    return app;
}

void LayerCommand::declare_slots(CLI::App& app) {
    app.add_option(
           "--slots", options_.slots,
           "Places of the rows at their experts: contiguous, by counts that travel first, or fixed, for all tokens "
           "of each PE")
        ->check(CLI::IsMember({"packed", "fixed"}))
        ->capture_default_str();
}

int LayerCommand::run() {
    const auto job = Job::start();
    return job ? run_layers(*job) : EXIT_FAILURE;
}

int LayerCommand::fail(const std::string& who, const Status& status) const {
    std::cerr << fmt::format("npushmem-perf {}: {}{}\n", name_, who, status.message());
    return EXIT_FAILURE;
}

// Runs the layers of an .npy file in sequence, or the one that --layer gives.
int LayerCommand::run_layers(const Job& job) {
    if (options_.layer || options_.routing_file.empty()) return run_case(job);
    auto layers = moe::layers_of_routing_file(options_.routing_file);
    if (layers.ok() && layers.value() > 1 && !(options_.csv.empty() && options_.svg.empty()))
        layers = Status{Code::argument,
                        "the routing file has several layers; --csv and --svg need one of them: give --layer"};
    if (any_refused(job, layers.ok() ? Status{} : layers.status())) return EXIT_FAILURE;
    if (layers.value() == 1) return run_case(job);
    for (std::int32_t layer = 0; layer < layers.value(); ++layer) {
        if (job.is_reporter()) std::cout << fmt::format("-- layer {} of {}\n", layer, layers.value()) << std::flush;
        options_.layer = layer;
        if (const int status = run_case(job); status != EXIT_SUCCESS) return status;
    }
    if (job.is_reporter()) std::cout << fmt::format("-- {} layers replayed\n", layers.value()) << std::flush;
    return EXIT_SUCCESS;
}

bool LayerCommand::any_refused(const Job& job, const Status& status) const {
    const std::string who = fmt::format("PE {}: ", job.pe());
    const auto refused = lowest_pe_where(job, !status.ok());
    if (!refused.ok())
        (void)fail(who, refused.status());
    else if (refused.value() == job.pe())
        (void)fail(job.is_reporter() ? "" : who, status);
    return !refused.ok() || refused.value() != no_pe;
}

// A failure of some PEs is reported by each of them; a failure that all PEs find alike is reported once.
int LayerCommand::run_case(const Job& job) {
    const std::string who = fmt::format("PE {}: ", job.pe());
    const auto resources = resources_of(job, receive_buffers_);
    if (!resources.ok()) return fail(who, resources.status());
    const auto c = make_combine_case(options_, resources.value());
    if (any_refused(job, c.ok() ? Status{} : c.status())) return EXIT_FAILURE;
    const auto outcome = measure(job, c.value());
    if (!outcome.ok()) return fail(who, outcome.status());
    if (!job.is_reporter()) return outcome.value().difference ? EXIT_FAILURE : EXIT_SUCCESS;
    const Status shown = outcome.value().difference ? Status{Code::state, difference_text(*outcome.value().difference)}
                                                    : write_outcome(outcome.value());
    return shown.ok() ? EXIT_SUCCESS : fail("", shown);
}

Status LayerCommand::write_outcome(const Outcome& outcome) const {
    std::cout << outcome.report << std::flush;
    const Status csv = write(options_.csv, outcome.csv);
    return csv.ok() ? write(options_.svg, outcome.svg) : csv;
}

}  // namespace npushmem::perf
