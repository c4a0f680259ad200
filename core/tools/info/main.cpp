// SPDX-License-Identifier: BSD-3-Clause
// npushmem-info: reports how the runtime would behave on this machine, without running it.
#include <fmt/core.h>

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
#include "core/tools/info/reports.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/nic_claim.hpp"

using namespace npushmem;

namespace {

int failed(const Status& status) {
    write_error(fmt::format("npushmem-info: {}\n", status.message()));
    return 1;
}

// This program links the library's code, but reports for the library in the lib folder next to it.
std::vector<std::string> folders_of_the_library(const Settings& settings) {
    const std::filesystem::path own = directory_of_this_library();
    return plugin_search_path_from(settings.plugin_path, own.empty() ? "" : (own / NPUSHMEM_BIN_TO_LIB).string());
}

Status write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (file) return {};
    return {Code::config, fmt::format("cannot write \"{}\": {}", path, std::strerror(errno))};
}

// Discovers this machine, for PEs that the launcher binds to any CPU.
double cores_here() {
    const CpuFacts cpus = read_cpu_facts();
    return usable_cores(std::span(&cpus.affinity, 1), cpus.quota);
}

Status report_topology(const info::Options& options, const Settings& settings) {
    if (!options.save.empty())
        if (Status saved = topology::save_machine(settings.topo_file, options.save); !saved.ok()) return saved;
    if (!options.topology && options.draw.empty()) return {};
    auto job = info::view_job(settings, options.pes, options.nodes);
    if (!job.ok()) return job.status();
    const auto key = topology::machine_key(job.value().machine, settings.emulated_host);
    if (options.topology)
        write_output(fmt::format("{}\n{}", info::describe_topology(job.value(), all_nic_claims(), key),
                                 info::describe_kernels(settings, options.pes, options.nodes, cores_here())));
    return options.draw.empty() ? Status{} : write_file(options.draw, info::draw(job.value()));
}

Status report_barriers(const info::Options& options, const Settings& settings) {
    if (!options.barriers) return {};
    const auto text = info::describe_barriers(settings, options.pes, options.nodes, cores_here());
    if (text.ok()) write_output(text.value());
    return text.ok() ? Status{} : text.status();
}

int print_reports(const info::Options& options, Config& config) {
    const Settings& settings = config.settings();
    const auto folders = folders_of_the_library(settings);
    const auto catalogue = PluginCatalogue::scan(
        PluginFinder(folders), [](const FoundPlugin& found) { return info::examine_in_child(found); });
    declare_plugins(catalogue, config);
    if (options.variables) write_output(info::describe_variables(config));
    if (options.plugins) write_output(info::describe_plugins(catalogue, folders));
    Status reported = report_barriers(options, settings);
    if (reported.ok()) reported = report_topology(options, settings);
    return reported.ok() ? 0 : failed(reported);
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
    const auto catalogue =
        PluginCatalogue::scan(PluginFinder(folders_of_the_library(config.value().settings())),
                              [](const FoundPlugin& found) { return info::examine_in_child(found); });
    declare_plugins(catalogue, config.value());
    write_output(info::variables_page(config.value()));
    return 0;
}

// Malformed variables keep their defaults here, so that they do not hide the rest of the report.
int print(const info::Options& options) {
    if (options.variables_page) return print_variables_page();
    const info::ReadableEnvironment environment{ProcessEnvironment{}};
    for (const Status& error : environment.errors()) (void)failed(error);
    if (options.version) write_output(info::describe_version());
    auto config = Config::read(environment);
    if (!config.ok()) return failed(config.status());
    const int status = print_reports(options, config.value());
    return environment.errors().empty() ? status : 1;
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
