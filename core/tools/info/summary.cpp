// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"
#include "core/base/version.hpp"
#include "core/npu/check/report/sequence.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

constexpr std::size_t max_columns = 100;
constexpr std::size_t name_columns = 14;
constexpr std::size_t max_reason = 3 * (max_columns - name_columns);

PluginNames names_of(PluginKind kind, const PluginReport& plugins) {
    PluginNames names;
    for (const PluginEntry& entry : plugins.entries)
        if (entry.found.kind == kind) (entry.usable() ? names.found : names.refused).push_back(entry.found.name);
    for (const AbsentPlugin& absent : plugins.absent)
        if (absent.kind == kind) names.absent.push_back(absent.name);
    return names;
}

std::string text_of_nic(const topology::Nic& nic) {
    const auto state = std::max_element(nic.ports.begin(), nic.ports.end(),
                                        [](const auto& a, const auto& b) { return a.state < b.state; });
    return fmt::format("{} ({}, {})", nic.name, nic.kind == topology::NicKind::rdma ? "verbs" : "network",
                       state == nic.ports.end() ? "no port" : topology::name_of(state->state));
}

JobPreview preview_of(const SummarySources& sources) {
    JobPreview preview;
    preview.pes = sources.pes;
    preview.remote = preview_remote_transport(sources.config.settings(), sources.plugins.entries, sources.system);
    if (sources.job != nullptr) {
        preview.routes = routes_of(*sources.job);
        preview.nics = sources.job->hosts.front().pes;
    }
    if (sources.barrier != nullptr)
        preview.barrier = fmt::format("{} ({})", name_of(sources.barrier->choice.plan), sources.barrier->choice.why);
    return preview;
}

std::string list_or_none(const std::vector<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

std::string text_of_names(const PluginNames& names) {
    std::string text = fmt::format("{} found: {}", names.found.size(), list_or_none(names.found));
    if (!names.absent.empty()) text += fmt::format("; {} absent: {}", names.absent.size(), list_or_none(names.absent));
    if (!names.refused.empty())
        text += fmt::format("; {} refused: {}", names.refused.size(), list_or_none(names.refused));
    return text;
}

std::string text_of_routes(const std::vector<RouteLine>& routes) {
    std::string text;
    for (const RouteLine& line : routes)
        text += fmt::format("{}PE {} {}", text.empty() ? "" : ", ", topology::pe_ranges(line.pes), line.transport);
    return text.empty() ? "unknown: the preview failed" : text + ", seen from PE 0";
}

// "0-3 mlx5_0:1, 4-7 mlx5_1:1".
std::string text_of_nics(const JobPreview& job) {
    std::vector<std::pair<std::string, std::vector<std::uint32_t>>> groups;
    for (const auto& pe : job.nics) {
        std::string ports;
        for (const auto& nic : pe.nics) ports += (ports.empty() ? "" : "+") + name_of(nic);
        if (ports.empty()) ports = "none";
        auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == ports; });
        if (group == groups.end()) group = groups.insert(groups.end(), {ports, {}});
        group->second.push_back(pe.pe);
    }
    std::string text;
    for (const auto& [ports, pes] : groups)
        text += fmt::format("{}PE {} {}", text.empty() ? "" : ", ", topology::pe_ranges(pes), ports);
    return text.empty() ? "unknown: the preview failed" : text;
}

std::string text_of_variables(const Summary& summary) {
    // The unknown ones come first: the line may be cut.
    std::string text;
    if (!summary.unknown.empty())
        text = fmt::format("{} unknown: {}; ", summary.unknown.size(), list_or_none(summary.unknown));
    text += fmt::format("{} set", topology::counted(summary.variables.size(), "variable"));
    if (!summary.variables.empty()) text += fmt::format(": {}", list_or_none(summary.variables));
    return text;
}

// Cuts between UTF-8 characters. Control characters, which would break the line, become blanks.
std::string cut_to(std::size_t columns, std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
    if (text.size() <= columns) return text;
    std::size_t end = columns - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end) + "...";
}

std::string verdict(const Summary& summary) {
    if (summary.first_problem.empty())
        return fmt::format("Ready: npushmem-run -n {} ./program; npushmem-info --help lists the reports",
                           summary.job.pes);
    constexpr std::string_view advice = "; see npushmem-info --doctor";
    return cut_to(max_reason, "Not ready: " + summary.first_problem) + std::string(advice);
}

}  // namespace

Summary summarise(const SummarySources& sources) {
    Summary summary;
    const SystemFacts& system = sources.system;
    summary.library = system.library.path;
    summary.plugin_folders = sources.plugins.folders;
    summary.host_name = host_name();
    summary.usable_cores = system.usable_cores();
    summary.cpus = system.cpus;
    summary.memory = system.memory.available;
    summary.kernel = system.kernel.release;
    if (sources.job != nullptr) {
        for (const auto& nic : sources.job->machine.nics) summary.nics.push_back(text_of_nic(nic));
        summary.accelerators = sources.job->machine.accelerators.size();
    }
    summary.transports = names_of(PluginKind::transport, sources.plugins);
    summary.bootstraps = names_of(PluginKind::bootstrap, sources.plugins);
    summary.collectives = names_of(PluginKind::collectives, sources.plugins);
    summary.job = preview_of(sources);
    for (const EffectiveValue& row : sources.config.effective())
        if (!row.is_default()) summary.variables.push_back(row.variable());
    summary.unknown = sources.unknown;
    summary.problems = count(sources.checks, Severity::problem);
    summary.notes = count(sources.checks, Severity::note);
    if (const Check* problem = first_problem(sources.checks))
        summary.first_problem = fmt::format("{}: {}", problem->subject, problem->found);
    return summary;
}

std::string describe(const Summary& summary) {
    std::vector<std::string> lines;
    const auto add = [&lines](std::string_view name, const std::string& value) {
        lines.push_back(fmt::format("{:<13} {}", name, value));
    };
    const auto add_reason = [&add](std::string_view name, const std::string& value) {
        for (const std::string& line : npu::check::wrapped(cut_to(max_reason, value), max_columns - name_columns)) {
            add(name, line);
            name = {};
        }
    };
    lines.push_back(
        fmt::format("npushmem {}.{}.{}", library_version.major, library_version.minor, library_version.patch));
    add("library", summary.library.empty() ? "not found" : summary.library);
    add("plugins", list_or_none(summary.plugin_folders));
    add("machine",
        fmt::format("{}: {:.3g} usable of {}, {} of {} memory available, Linux {}", summary.host_name,
                    summary.usable_cores, topology::counted(static_cast<std::size_t>(summary.cpus), "CPU"),
                    format_size(summary.memory.available), format_size(summary.memory.total), summary.kernel));
    add("NICs",
        summary.nics.empty() ? "none" : fmt::format("{}: {}", summary.nics.size(), fmt::join(summary.nics, ", ")));
    add("NPUs", summary.accelerators == 0 ? "emulated on CPUs"
                                          : fmt::format("emulated, at the places of {}",
                                                        topology::counted(summary.accelerators, "accelerator")));
    add("transports", text_of_names(summary.transports));
    add("bootstraps", text_of_names(summary.bootstraps));
    add("collectives", text_of_names(summary.collectives));
    add("environment", text_of_variables(summary));
    lines.push_back(fmt::format("A job of {} on this machine would choose:",
                                topology::counted(static_cast<std::size_t>(summary.job.pes), "PE")));
    const RemotePreview& remote = summary.job.remote;
    add("  transports", text_of_routes(summary.job.routes));
    add_reason("  other hosts", fmt::format("{} ({})", remote.name.empty() ? "none" : remote.name, remote.why));
    add_reason("  barrier", summary.job.barrier.empty() ? "unknown: the preview failed" : summary.job.barrier);
    add("  NICs", text_of_nics(summary.job));
    add("checks", fmt::format("{}, {} (npushmem-info --doctor)", topology::counted(summary.problems, "problem"),
                              topology::counted(summary.notes, "note")));
    for (std::string& line : npu::check::wrapped(verdict(summary), max_columns)) lines.push_back(std::move(line));
    std::string text;
    for (const std::string& line : lines) text += cut_to(max_columns, line) + "\n";
    return text;
}

}  // namespace npushmem::info
