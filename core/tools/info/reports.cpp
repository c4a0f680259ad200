// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/reports.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/base/config.hpp"
#include "core/base/version.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/tools/common/cli_documents.hpp"
#include "npushmem.h"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

std::string_view visible(std::string_view text) { return text.empty() ? "(empty)" : text; }

std::string_view shown_value(const EffectiveValue& row) {
    return !row.is_default() && !row.value.empty() && is_secret(row.name) ? "(set, not shown)" : visible(row.value);
}

std::string variable_lines(const EffectiveValue& row) {
    const std::string standard = row.standard.empty() ? "" : fmt::format(" with {}", row.standard);
    const std::string origin = row.is_default()
                                   ? std::string("default")
                                   : fmt::format("{}{}; default {}", row.place.empty() ? "environment" : row.place,
                                                 standard, visible(row.default_value));
    return fmt::format("{} = {}  [{}]\n    {}; {}\n", row.variable(), shown_value(row), origin, row.meaning, row.type);
}

std::string usable_lines(const PluginEntry& entry) {
    std::string text = fmt::format("  {:<10} {:<10} {}\n", name_of(entry.found.kind), entry.found.name, entry.summary);
    text += fmt::format("             {}, interface {}.{}", entry.found.path, entry.major, entry.minor);
    if (entry.found.kind == PluginKind::transport) text += fmt::format("; {}", capability_names(entry.capabilities));
    for (const auto& variable : entry.variables)
        text += fmt::format("\n             NPUSHMEM_{} (default {}): {}", variable.name,
                            visible(variable.default_value), variable.meaning);
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

PluginReport report_plugins(const PluginCatalogue& catalogue, const std::vector<std::string>& folders) {
    PluginReport report{folders, catalogue.entries(), absent_plugins(folders)};
    std::erase_if(report.absent,
                  [&](const AbsentPlugin& absent) { return catalogue.find(absent.kind, absent.name) != nullptr; });
    return report;
}

std::string describe(const PluginReport& report) {
    std::string text = "searched, first match wins:\n";
    for (const auto& folder : report.folders)
        text += fmt::format("  {}{}\n", folder, std::filesystem::is_directory(folder) ? "" : "  (no such folder)");
    text += "plugins:\n";
    for (const auto& entry : report.entries) {
        text += entry.usable() ? usable_lines(entry) : refused_lines(entry);
        for (const auto& path : entry.found.shadowed) text += fmt::format("             hides {}\n", path);
    }
    for (const auto& absent : report.absent)
        text += fmt::format("  {:<10} {:<10} absent: {}\n", name_of(absent.kind), absent.name, absent.why);
    if (report.entries.empty()) text += "  none found; set NPUSHMEM_PLUGIN_PATH to their folder\n";
    return text;
}

std::string describe(const TopologyReport& report) {
    const JobView& job = report.job;
    return fmt::format("{}\n{}\n{}\n{}\nKernels, on hosts like this: {}\n", topology::describe(job.machine),
                       topology::describe(job.hosts.front()), describe_map(job),
                       topology::describe(report.claims, report.machine_key), report.kernels.text);
}

RemoteModeChoice preview_kernels(const Settings& settings, int pes, int nodes, double cores) {
    const HostOccupancy share{cores, (pes + nodes - 1) / nodes};
    return choose_remote_mode(settings.ib_enable_ibgda, nodes > 1, share);
}

Result<BarrierReport> preview_barrier(const Settings& settings, int pes, int nodes, double cores) {
    const auto tuning = barrier::Tuning::read(settings.coll_tuning_file);
    if (!tuning.ok()) return tuning.status().within("NPUSHMEM_COLL_TUNING_FILE");
    barrier::BarrierSelectionInput selection_input{.members = pes, .nodes = nodes, .mapped = nodes == 1};
    selection_input.pes_per_core = selection_input.pes_per_node() / cores;
    auto choice = barrier::choose(settings.barrier_algo, selection_input, tuning.value());
    if (!choice.ok()) return choice.status().within("NPUSHMEM_BARRIER_ALGO");
    return BarrierReport{std::move(choice).value(), pes, nodes, cores};
}

std::string describe(const BarrierReport& report) {
    return fmt::format("barriers:\n{}barrier of {} PEs on {} host{} of {:.3g} usable cores: {} ({})\n",
                       barrier::describe_algorithms(), report.pes, report.nodes, report.nodes == 1 ? "" : "s",
                       report.cores, name_of(report.choice.plan), report.choice.why);
}

std::string describe_version() {
    return fmt::format(
        "npushmem {}.{}.{}, interface of OpenSHMEM {}.{}, transport plugins {}.{}, bootstrap plugins {}.{}\n",
        library_version.major, library_version.minor, library_version.patch, NPUSHMEM_MAJOR_VERSION,
        NPUSHMEM_MINOR_VERSION, NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR, NPUSHMEM_BOOTSTRAP_MAJOR,
        NPUSHMEM_BOOTSTRAP_MINOR);
}

std::string variables_page(const Config& config) {
    std::string text = man_head("npushmem-variables", 7, "environment variables of npushmem");
    text +=
        ".SH DESCRIPTION\n" +
        man_paragraphs(
            "Every PE reads these variables once, at start. All PEs of a job should have the same values, except "
            "where a variable says otherwise. A malformed value ends the start with an error. A variable "
            "NPUSHMEM_... that nothing reads is reported with the nearest known name.\n\n"
            "npushmem-info -c prints the values in effect. Variables of plugins stand below the name of the plugin; "
            "other plugins than those of this installation may have more.\n\n"
            "Sizes accept a unit such as 64K or 1G, durations one such as 10s or 500ms.");
    std::string subsystem;
    for (const auto& row : config.effective()) {
        if (row.subsystem != subsystem) text += fmt::format(".SH {}\n", row.subsystem);
        subsystem = row.subsystem;
        text += man_entry(row.variable(), fmt::format("{}. Values: {}. Default: {}.", row.meaning, row.type,
                                                      row.default_value.empty() ? "none" : row.default_value));
    }
    text += ".SH VARIABLES OF OPENSHMEM\n" +
            man_paragraphs("They apply where the variable NPUSHMEM_... of the same meaning is not set.");
    for (const auto& variable : standard_variables())
        text += man_entry(
            fmt::format("{}, {}", variable.names[0], variable.names[1]),
            fmt::format("{}. Values: {}. Sets NPUSHMEM_{}.", variable.meaning, variable.accepted, variable.row));
    return text + ".SH SEE ALSO\n" + man_paragraphs("npushmem-info(1), npushmem-run(1), npushmem(7)");
}

namespace {

using topology::PciKind;

// Leaves out the domain 0000, which nearly every machine has.
std::string short_address(const std::string& address) {
    return address.starts_with("0000:") ? address.substr(5) : address;
}

class Builder {
public:
    explicit Builder(const JobView& job) : job_(job), machine_(job.machine) {}

    // All devices of this NUMA node.
    DeviceTree of_node(std::optional<std::size_t> node, std::string label) const {
        DeviceTree tree;
        tree.label = std::move(label);
        add_npus(
            tree, [&](const topology::Location& location) { return !location.pci && location.numa == node; },
            "emulated NPUs");
        add_nics(tree, [&](const topology::Location& location) { return !location.pci && location.numa == node; });
        for (std::size_t i = 0; i < machine_.pci.size(); ++i) {
            if (!machine_.pci[i].parent && machine_.pci[i].numa == node) absorb(tree, of_object(i));
        }
        return tree;
    }

private:
    DeviceTree of_object(std::size_t index) const {
        const auto& object = machine_.pci[index];
        DeviceTree tree;
        const auto here = [&](const topology::Location& location) { return location.pci == index; };
        const bool accelerator = is_accelerator(index);
        add_npus(tree, here, accelerator ? "accelerator " + short_address(object.address) : "emulated NPUs");
        if (tree.npus.empty() && accelerator) tree.npus.push_back({"accelerator " + short_address(object.address), {}});
        add_nics(tree, here);
        for (std::size_t child = index + 1; child < machine_.pci.size(); ++child) {
            if (machine_.pci[child].parent == index) absorb(tree, of_object(child));
        }
        tree.label = label_of(object);
        return tree;
    }

    static std::string label_of(const topology::PciObject& object) {
        if (object.kind == PciKind::host_bridge) return "host bridge " + short_address(object.address);
        return (object.kind == PciKind::bridge ? "PCIe switch " : "device ") + short_address(object.address);
    }

    // A bridge with one device is not a group; neither is a bridge that contains only another group.
    static void absorb(DeviceTree& into, DeviceTree part) {
        const std::size_t leaves = part.npus.size() + part.nics.size();
        if (leaves == 0 || (leaves == 1 && part.groups.empty())) {
            std::move(part.npus.begin(), part.npus.end(), std::back_inserter(into.npus));
            std::move(part.nics.begin(), part.nics.end(), std::back_inserter(into.nics));
            std::move(part.groups.begin(), part.groups.end(), std::back_inserter(into.groups));
        } else {
            into.groups.push_back(std::move(part));
        }
    }

    template <class Here>
    void add_npus(DeviceTree& tree, Here here, const std::string& label) const {
        NpuLeaf leaf{label, {}};
        for (std::size_t i = 0; i < job_.places.size(); ++i) {
            if (here(job_.places[i].location)) leaf.places.push_back(i);
        }
        if (!leaf.places.empty()) tree.npus.push_back(std::move(leaf));
    }

    template <class Here>
    void add_nics(DeviceTree& tree, Here here) const {
        for (std::size_t i = 0; i < job_.rails.size(); ++i) {
            if (here(job_.rails[i].location)) tree.nics.push_back({i});
        }
    }

    bool is_accelerator(std::size_t pci) const {
        return std::any_of(machine_.accelerators.begin(), machine_.accelerators.end(),
                           [&](const auto& accelerator) { return accelerator.pci == pci; });
    }

    const JobView& job_;
    const topology::Machine& machine_;
};

std::string label_of_node(const topology::Machine& machine, std::size_t node) {
    const auto& numa = machine.numa_nodes[node];
    const std::string package =
        numa.package ? fmt::format(", package {}", machine.packages[*numa.package].os_index) : std::string();
    return fmt::format("NUMA node {}{}, cpus {}", numa.os_index, package, topology::describe(numa.cpus));
}

}  // namespace

std::vector<DeviceTree> device_trees(const JobView& job) {
    const Builder builder(job);
    std::vector<DeviceTree> trees;
    for (std::size_t node = 0; node < job.machine.numa_nodes.size(); ++node) {
        trees.push_back(builder.of_node(node, label_of_node(job.machine, node)));
    }
    trees.push_back(builder.of_node(std::nullopt, "NUMA node unknown"));
    std::erase_if(trees, [](const DeviceTree& tree) { return tree.empty(); });
    return trees;
}

}  // namespace npushmem::info
