#include "core/tools/info/reports.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "core/base/config.hpp"
#include "core/base/version.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/runtime/remote_transport.hpp"
#include "core/tools/info/absent_plugins.hpp"
#include "npushmem.h"
#include "topology/describe.hpp"

namespace npushmem::info {

namespace {

std::string quoted(const std::string& text) { return text.empty() ? "(empty)" : text; }

// Reports are pasted into mails: what lets a stranger into a job stays out of them.
bool is_secret(const std::string& name) {
    for (const char* part : {"UNIQUEID", "SECRET", "SESSION_ID"})
        if (name.find(part) != std::string::npos) return true;
    return false;
}

std::string shown_value(const EffectiveValue& row) {
    return row.from_environment && !row.value.empty() && is_secret(row.name) ? "(set, not shown)" : quoted(row.value);
}

std::string variable_lines(const EffectiveValue& row) {
    const std::string standard = row.standard.empty() ? "" : fmt::format(" with {}", row.standard);
    const std::string origin = row.from_environment
                                   ? fmt::format("environment{}; default {}", standard, quoted(row.default_value))
                                   : std::string("default");
    return fmt::format("NPUSHMEM_{} = {}  [{}]\n    {}; {}\n", row.name, shown_value(row), origin, row.meaning,
                       row.type);
}

std::string usable_lines(const PluginEntry& entry) {
    std::string text = fmt::format("  {:<10} {:<10} {}\n", name_of(entry.found.kind), entry.found.name, entry.summary);
    text += fmt::format("             {}, interface {}.{}", entry.found.path, entry.major, entry.minor);
    if (entry.found.kind == PluginKind::transport) text += fmt::format("; {}", capability_names(entry.capabilities));
    for (const auto& variable : entry.variables)
        text += fmt::format("\n             NPUSHMEM_{} (default {}): {}", variable.name,
                            quoted(variable.default_value), variable.meaning);
    return text + "\n";
}

std::string refused_lines(const PluginEntry& entry) {
    return fmt::format("  {:<10} {:<10} REFUSED at stage '{}'\n             {}\n", name_of(entry.found.kind),
                       entry.found.name, name_of(entry.refusal->stage), entry.refusal->text);
}

}  // namespace

std::string describe_variables(const Config& config) {
    std::string text;
    std::string subsystem;
    for (const auto& row : config.effective()) {
        if (row.subsystem != subsystem) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", row.subsystem);
        subsystem = row.subsystem;
        text += variable_lines(row);
    }
    text += fmt::format("\n{}", describe_standard_variables());
    for (const auto& sentence : missing_directories(config.settings().plugin_path))
        text += fmt::format("\nwarning: {}\n", sentence);
    for (const auto& sentence : config.unknown_variables()) text += fmt::format("\nwarning: {}\n", sentence);
    return text;
}

std::string describe_plugins(const PluginCatalogue& catalogue, const std::vector<std::string>& folders) {
    std::string text = "searched, first match wins:\n";
    for (const auto& folder : folders)
        text += fmt::format("  {}{}\n", folder, std::filesystem::is_directory(folder) ? "" : "  (no such folder)");
    text += "plugins:\n";
    for (const auto& entry : catalogue.entries()) {
        text += entry.usable() ? usable_lines(entry) : refused_lines(entry);
        for (const auto& path : entry.found.shadowed) text += fmt::format("             hides {}\n", path);
    }
    for (const auto& absent : absent_plugins(folders))
        if (catalogue.find(absent.kind, absent.name) == nullptr)
            text += fmt::format("  {:<10} {:<10} absent: {}\n", name_of(absent.kind), absent.name, absent.why);
    if (catalogue.entries().empty()) text += "  none found; set NPUSHMEM_PLUGIN_PATH to their folder\n";
    return text;
}

std::string describe_topology(const JobView& job, std::span<const topology::NicClaim> claims, std::uint64_t machine) {
    return topology::describe(job.machine) + "\n" + topology::describe(job.hosts.front()) + "\n" + describe_map(job) +
           "\n" + topology::describe(claims, machine);
}

std::string describe_kernels(const Settings& settings, int pes, int nodes, double cores) {
    const HostOccupancy share{cores, (pes + nodes - 1) / nodes};
    return fmt::format("Kernels, on hosts like this: {}\n",
                       choose_remote_mode(settings.ib_enable_ibgda, nodes > 1, share).text);
}

Result<std::string> describe_barriers(const Settings& settings, int pes, int nodes, double cores) {
    const auto tuning = barrier::Tuning::read(settings.coll_tuning_file);
    if (!tuning.ok()) return tuning.status().within("NPUSHMEM_COLL_TUNING_FILE");
    barrier::BarrierSelectionInput selection_input{.members = pes, .nodes = nodes, .mapped = nodes == 1};
    selection_input.pes_per_core = selection_input.pes_per_node() / cores;
    const auto choice = barrier::choose(settings.barrier_algo, selection_input, tuning.value());
    if (!choice.ok()) return choice.status().within("NPUSHMEM_BARRIER_ALGO");
    return fmt::format("barriers:\n{}barrier of {} PEs on {} host{} of {:.3g} usable cores: {} ({})\n",
                       barrier::describe_algorithms(), pes, nodes, nodes == 1 ? "" : "s", cores,
                       name_of(choice.value().plan), choice.value().why);
}

std::string describe_version() {
    return fmt::format(
        "npushmem {}.{}.{}, interface of OpenSHMEM {}.{}, transport plugins {}.{}, bootstrap plugins {}.{}\n",
        library_version.major, library_version.minor, library_version.patch, NPUSHMEM_MAJOR_VERSION,
        NPUSHMEM_MINOR_VERSION, NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR, NPUSHMEM_BOOTSTRAP_MAJOR,
        NPUSHMEM_BOOTSTRAP_MINOR);
}

}  // namespace npushmem::info
