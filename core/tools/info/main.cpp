// SPDX-License-Identifier: BSD-3-Clause
// npushmem-info: reports how the runtime would behave on this machine, without running it.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/host_facts.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/tools/info/drawing.hpp"
#include "core/tools/info/options.hpp"
#include "core/tools/info/plugin_examination.hpp"
#include "core/tools/info/reports_json.hpp"
#include "core/tools/info/summary.hpp"
#include "core/tools/info/system_facts.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/nic_claim.hpp"

using namespace npushmem;

namespace {

int failed(const Status& status) {
    write_error(fmt::format("npushmem-info: {}\n", status.message()));
    return 1;
}

// This program links the library's code, but reports for the library in the lib folder next to it.
info::Installation installation() {
    const std::filesystem::path own = directory_of_this_library();
    return {own.string(), own.empty() ? "" : (own / NPUSHMEM_BIN_TO_LIB).lexically_normal().string()};
}

Status write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (file) return {};
    return {Code::config, fmt::format("cannot write \"{}\": {}", path, std::strerror(errno))};
}

PluginCatalogue scan(const std::vector<std::string>& folders) {
    return PluginCatalogue::scan(PluginFinder(folders),
                                 [](const FoundPlugin& found) { return info::examine_in_child(found); });
}

// Makes the reports of one call. They see this machine as PEs do that the launcher binds to any CPU.
class Reporter {
public:
    Reporter(const info::Options& options, const info::ReadableEnvironment& environment, Config& config)
        : options_(options), environment_(environment), config_(config), installation_(installation()) {
        const CpuFacts cpus = read_cpu_facts();
        cores_ = usable_cores(std::span(&cpus.affinity, 1), cpus.quota);
        const auto folders = plugin_search_path_from(settings().plugin_path, installation_.library);
        const auto catalogue = scan(folders);
        declare_plugins(catalogue, config_);
        plugins_ = info::report_plugins(catalogue, folders);
    }

    // Fills the requested reports, up to the first failure, and writes the requested files.
    Status fill(info::Reports& reports) {
        reports.version = options_.version;
        if (options_.variables) reports.variables = &config_;
        if (options_.plugins) reports.plugins = plugins_;
        if (options_.barriers) {
            auto barriers = info::preview_barrier(settings(), options_.pes, options_.nodes, cores_);
            if (!barriers.ok()) return barriers.status();
            reports.barriers = std::move(barriers).value();
        }
        if (!options_.save.empty())
            if (Status saved = topology::save_machine(settings().topo_file, options_.save); !saved.ok()) return saved;
        if (options_.topology || !options_.draw.empty())
            if (Status viewed = fill_topology(reports); !viewed.ok()) return viewed;
        if (options_.doctor || options_.summary) fill_checks(reports);
        if (options_.jobs) reports.jobs = info::find_jobs();
        return {};
    }

private:
    [[nodiscard]] const Settings& settings() const { return config_.settings(); }

    Status fill_topology(info::Reports& reports) {
        auto job = info::view_job(settings(), options_.pes, options_.nodes);
        if (!job.ok()) return job.status();
        const std::string drawing = options_.draw.empty() ? "" : info::draw(job.value());
        if (options_.topology) {
            const auto key = topology::machine_key(job.value().machine, settings().emulated_host);
            reports.topology = {std::move(job).value(), all_nic_claims(), key,
                                info::preview_kernels(settings(), options_.pes, options_.nodes, cores_)};
        }
        return options_.draw.empty() ? Status{} : write_file(options_.draw, drawing);
    }

    // The checks and the summary are about a job on this machine alone.
    void fill_checks(info::Reports& reports) {
        const int pes = options_.pes_given ? options_.pes : std::max(1, static_cast<int>(cores_));
        const info::SystemFacts system = info::gather_facts(settings(), installation_, ProcessEnvironment());
        const auto job = info::view_job(settings(), pes, 1);
        const auto barrier = info::preview_barrier(settings(), pes, 1, cores_);
        std::vector<Status> previews;
        for (const Status& status : {job.status(), barrier.status()})
            if (!status.ok()) previews.push_back(status);
        const auto unknown = config_.unknown_variables();
        auto checks = info::examine({system, settings(), plugins_.entries, plugins_.absent, plugins_.folders,
                                     environment_.errors(), unknown, previews, pes});
        if (options_.summary)
            reports.summary =
                info::summarise({config_, config_.unknown_names(), plugins_, system, job.ok() ? &job.value() : nullptr,
                                 barrier.ok() ? &barrier.value() : nullptr, checks, pes});
        if (options_.doctor) reports.checks = std::move(checks);
    }

    const info::Options& options_;
    const info::ReadableEnvironment& environment_;
    Config& config_;
    info::Installation installation_;
    double cores_ = 1;
    info::PluginReport plugins_;
};

bool has_problem(const info::Reports& reports) {
    return (reports.checks && info::first_problem(*reports.checks) != nullptr) ||
           (reports.summary && reports.summary->problems != 0);
}

// An environment without variables.
class EmptyEnvironment final : public Environment {
public:
    [[nodiscard]] std::optional<std::string> get(const std::string& /*name*/) const override { return std::nullopt; }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override { return {}; }
};

// The page is about the installed plugins and no values, so it does not depend on the environment.
int print_variables_page() {
    auto config = Config::read(EmptyEnvironment());
    if (!config.ok()) return failed(config.status());
    declare_plugins(scan(plugin_search_path_from("", installation().library)), config.value());
    write_output(info::variables_page(config.value()));
    return 0;
}

// Malformed variables keep their defaults here, so that they do not hide the rest of the report. The checks report them
// as problems.
int print(const info::Options& options) {
    if (options.variables_page) return print_variables_page();
    const info::ReadableEnvironment environment{ProcessEnvironment{}};
    if (!options.doctor && !options.summary)
        for (const Status& error : environment.errors()) (void)failed(error);
    auto config = Config::read(environment);
    if (!config.ok()) return failed(config.status());
    info::Reports reports;
    const Status filled = Reporter(options, environment, config.value()).fill(reports);
    // A failure leaves the reports before it; --draw and --save alone print nothing.
    if (options.json)
        write_output(info::to_json(reports));
    else
        write_output(info::describe(reports));
    if (!filled.ok()) return failed(filled);
    return environment.errors().empty() && !has_problem(reports) ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
    const auto parsed = info::parse_options(arguments);
    if (const auto* options = std::get_if<info::Options>(&parsed)) return print(*options);
    const auto& exit = std::get<info::EarlyExit>(parsed);
    exit.status == 0 ? write_output(exit.text) : write_error(exit.text);
    return exit.status;
}

}  // namespace

int main(int argc, char** argv) {
    prepare_standard_streams();
    (void)std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, the system does not report how a child process ended
    return checked_status("npushmem-info", run({argv + 1, argv + argc}));
}
