// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_preparation.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/base/launcher_channel.hpp"
#include "core/base/parse.hpp"
#include "core/base/rxm_variables.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/placement.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/binding.hpp"

namespace npushmem::run {

EnvironmentBlock EnvironmentBlock::copy_of(const char* const* environment) {
    EnvironmentBlock block;
    for (; environment != nullptr && *environment != nullptr; ++environment) block.entries_.emplace_back(*environment);
    return block;
}

std::vector<std::string>::const_iterator EnvironmentBlock::find(std::string_view name) const {
    return std::find_if(entries_.begin(), entries_.end(), [name](const std::string& entry) {
        return entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0;
    });
}

void EnvironmentBlock::set(std::string_view name, std::string_view value) {
    std::string entry(name);
    entry.append("=").append(value);
    const auto found = find(name);
    if (found == entries_.end())
        entries_.push_back(std::move(entry));
    else
        entries_[static_cast<std::size_t>(found - entries_.begin())] = std::move(entry);
}

const char* EnvironmentBlock::value(std::string_view name) const {
    if (const auto found = find(name); found != entries_.end()) return found->c_str() + name.size() + 1;
    const auto in_file = file_values_.find(std::string(name));
    return in_file == file_values_.end() ? nullptr : in_file->second.text.c_str();
}

void EnvironmentBlock::set_default(std::string_view name, std::string_view value) {
    if (this->value(name) == nullptr) set(name, value);
}

std::vector<char*> EnvironmentBlock::pointers() {
    std::vector<char*> out;
    out.reserve(entries_.size() + 1);
    for (auto& entry : entries_) out.push_back(entry.data());
    out.push_back(nullptr);
    return out;
}

namespace {

bool is_directory(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool can_run(const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !is_directory(path); }

std::variant<std::string, ProgramError> checked(const std::string& path) {
    if (::access(path.c_str(), F_OK) != 0)
        return ProgramError{exit_not_found, fmt::format("program '{}' was not found: {}", path, std::strerror(errno))};
    if (is_directory(path))
        return ProgramError{exit_not_executable, fmt::format("'{}' is a directory, not a program", path)};
    if (!can_run(path))
        return ProgramError{exit_not_executable, fmt::format("program '{}' is there but you may not execute it", path)};
    return path;
}

}  // namespace

std::variant<std::string, ProgramError> find_program(const std::string& name, const std::string& search_path) {
    if (name.find('/') != std::string::npos) return checked(name);
    for (const auto& folder : split(search_path, ':')) {
        const std::string path = (folder.empty() ? "." : folder) + "/" + name;
        if (!name.empty() && can_run(path)) return path;
    }
    const bool here = !name.empty() && can_run("./" + name);
    return ProgramError{exit_not_found,
                        fmt::format("program '{}' was not found in PATH{}", name,
                                    here ? fmt::format("; for the one in this folder write ./{}", name) : "")};
}

namespace {

Result<EnvironmentBlock> common_environment(const Options& options, const char* const* environment) {
    auto block = EnvironmentBlock::copy_of(environment);
    for (const auto& [name, value] : options.exports) block.set(name, value);
    const char* const path = block.value(config_file_variable);
    auto values = read_config_file(std::string(trimmed(path == nullptr ? "" : path)), read_content);
    if (!values.ok()) return values.status();
    block.use_config_file(std::move(values).value());
    const int npes = options.job_npes > 0 ? options.job_npes : options.npes;
    block.set("NPUSHMEM_NPES", std::to_string(npes));
    block.set_default("NPUSHMEM_BOOTSTRAP", launcher_bootstrap);
    // Unless these are set, the PSM libraries, which libfabric loads, catch SIGTERM and the signals of crashes, and
    // exit with status 1.
    block.set_default("IPATH_NO_BACKTRACE", "1");
    block.set_default("HFI_NO_BACKTRACE", "1");
    // A transport could set these only while threads of the program may read the environment.
    for (const auto& [name, value] : rxm_variables(npes)) block.set_default(name, std::to_string(value));
    // All PEs are on this host: other hosts need not reach the rendezvous.
    if (options.hosts.empty() && options.job_npes == 0) block.set_default("NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo");
    return block;
}

topology::BindUnit unit_of(Bind bind) {
    if (bind == Bind::hwthread) return topology::BindUnit::hwthread;
    if (bind == Bind::numa) return topology::BindUnit::numa;
    return topology::BindUnit::core;
}

// hwloc is slow: it is not called where its result cannot matter.
bool binding_possible(const Options& options) {
    if (options.bind != Bind::automatic) return options.bind != Bind::none;
    return options.npes > 1 && static_cast<unsigned>(options.npes) <= std::thread::hardware_concurrency();
}

// PEs of all emulated hosts share this machine's devices round-robin.
Result<std::vector<CpuList>> near_devices(const Options& options, const EnvironmentBlock& environment) {
    const char* file = environment.value("NPUSHMEM_TOPO_FILE");
    const auto machine = topology::machine_of(file == nullptr ? "" : file);
    if (!machine.ok()) return machine.status();
    const auto allowed = topology::own_cpus();
    if (!allowed.ok()) return allowed.status();
    return topology::cpus_near_devices(machine.value(), static_cast<std::size_t>(options.npes), allowed.value());
}

Result<std::vector<CpuList>> bound_cpus(const Options& options, const EnvironmentBlock& environment) {
    if (options.bind == Bind::device) return near_devices(options, environment);
    auto units = topology::allowed_units(unit_of(options.bind));
    if (!units.ok()) return units.status();
    return binding_plan(options.bind, units.value(), options.npes);
}

Status place(const Options& options, const EnvironmentBlock& environment, std::vector<PePlan>& pes) {
    pes.resize(static_cast<std::size_t>(options.npes));
    for (int pe = 0; options.nodes > 0 && pe < options.npes; ++pe)
        pes[static_cast<std::size_t>(pe)].emulated_host =
            emulated_host_of(pe, options.npes, options.nodes, options.map_by);
    if (!binding_possible(options)) return {};
    auto cpus = bound_cpus(options, environment);
    if (!cpus.ok() && options.bind == Bind::automatic) return {};
    if (!cpus.ok()) return cpus.status().within("--bind");
    for (std::size_t pe = 0; pe < pes.size(); ++pe) pes[pe].cpus = std::move(cpus.value()[pe]);
    return {};
}

EarlyExit refusal(int status, const std::string& message) {
    return {status, fmt::format("npushmem-run: {}\n", message)};
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    return fmt::format("{}", fmt::join(words, between));
}

// Plans one agent client for each host; it is this program again.
JobPlan plan_agent_clients(const Options& options, JobPlan plan) {
    plan.program = "/proc/self/exe";
    plan.hosts = options.hosts;
    plan.pes.resize(options.hosts.size());
    plan.arguments = {"npushmem-run", "--agent-client",
                      "--hosts",      joined(options.hosts, ","),
                      "--rsh",        joined(options.rsh, " "),
                      "--remote-run", options.remote_run,
                      "-n",           std::to_string(options.npes),
                      "--bind",       name_of(options.bind),
                      "--map-by",     name_of(options.map_by)};
    for (const auto& [name, value] : options.exports)
        plan.arguments.insert(plan.arguments.end(), {"-x", fmt::format("{}={}", name, value)});
    if (options.tag_output) plan.arguments.emplace_back("--tag-output");
    if (options.verbose) plan.arguments.emplace_back("--verbose");
    plan.arguments.emplace_back("--");
    plan.arguments.insert(plan.arguments.end(), options.command.begin(), options.command.end());
    return plan;
}

}  // namespace

std::variant<JobPlan, EarlyExit> prepare_job(const Options& options, const char* const* environment) {
    JobPlan plan;
    plan.job_pes = options.npes;
    auto common = common_environment(options, environment);
    if (!common.ok()) return refusal(exit_launcher_failed, common.status().message());
    plan.environment = std::move(common).value();
    if (!options.hosts.empty()) return plan_agent_clients(options, std::move(plan));
    const char* path = plan.environment.value("PATH");
    auto program = find_program(options.command.front(), path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
    if (const auto* error = std::get_if<ProgramError>(&program)) return refusal(error->status, error->message);
    plan.program = std::get<std::string>(program);
    plan.arguments = options.command;
    plan.pipe_output = options.tag_output;
    const Status placed = place(options, plan.environment, plan.pes);
    if (!placed.ok()) return refusal(exit_launcher_failed, placed.message());
    return plan;
}

bool needs_unique_id(const EnvironmentBlock& environment) {
    const auto value = [&](const char* name) {
        const char* text = environment.value(name);
        return std::string(trimmed(text == nullptr ? "" : text));
    };
    const std::string bootstrap = value("NPUSHMEM_BOOTSTRAP");
    const std::string name = lowercase(bootstrap) == "plugin" ? value("NPUSHMEM_BOOTSTRAP_PLUGIN") : bootstrap;
    if (name.find('/') != std::string::npos)
        return plugin_name_in(PluginKind::bootstrap, std::filesystem::path(name).filename().string()) == "uid";
    return lowercase(name) == "uid" || lowercase(name) == "auto";
}

}  // namespace npushmem::run
