// SPDX-License-Identifier: BSD-3-Clause
// The checks of the installation, the configuration and the plugins, and the report. doctor_system.cpp has those of the
// system.
#include "core/tools/info/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/base/parse.hpp"
#include "core/base/version.hpp"
#include "core/plugin/shared_library.hpp"
#include "core/plugin/transport_stack.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/transport.h"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

const PluginEntry* find_entry(std::span<const PluginEntry> plugins, PluginKind kind, std::string_view name) {
    const auto found = std::find_if(plugins.begin(), plugins.end(), [&](const PluginEntry& entry) {
        return entry.found.kind == kind && entry.found.name == name;
    });
    return found == plugins.end() ? nullptr : &*found;
}

bool is_usable(std::span<const PluginEntry> plugins, PluginKind kind, std::string_view name) {
    const PluginEntry* entry = find_entry(plugins, kind, name);
    return entry != nullptr && entry->usable();
}

// A plugin that the settings name, with the variable that names it.
struct NamedPlugin {
    PluginKind kind;
    std::string name;
    std::string variable;
};

void append_transports(const std::string& selection, const char* variable, std::vector<NamedPlugin>& out) {
    const auto parsed = parse_transport_selection(selection);
    if (!parsed.ok()) return;
    for (const auto& stack : parsed.value())
        for (const auto& layer : stack.layers)
            if (is_plugin_name(layer.name)) out.push_back({PluginKind::transport, layer.name, variable});
}

// Without those that are named by path. REMOTE_ORDER is no selection: what is missing there is passed over.
std::vector<NamedPlugin> named_plugins(const Settings& settings) {
    std::vector<NamedPlugin> out;
    append_transports(settings.transports, "NPUSHMEM_TRANSPORTS", out);
    if (settings.disable_p2p) std::erase_if(out, [](const NamedPlugin& plugin) { return plugin.name == "p2p"; });
    const std::string remote = lowercase(settings.remote_transport);
    if (!remote.empty() && remote != "auto" && remote != "none")
        append_transports(settings.remote_transport, "NPUSHMEM_REMOTE_TRANSPORT", out);
    const auto bootstrap = selected_bootstrap(settings);
    if (bootstrap.ok() && bootstrap.value() != "auto" && is_plugin_name(bootstrap.value()))
        out.push_back({PluginKind::bootstrap, bootstrap.value(), "NPUSHMEM_BOOTSTRAP"});
    if (is_plugin_name(settings.coll_library))
        out.push_back({PluginKind::collectives, settings.coll_library, "NPUSHMEM_COLL_LIBRARY"});
    return out;
}

std::string remedy_for(const Refusal& refusal) {
    const std::string install = remedy_for_missing_library(refusal.text);
    return install.empty() ? "replace the file by a plugin of this version" : install;
}

Check check_selected_plugin(const NamedPlugin& plugin, const Examined& examined) {
    Check check{fmt::format("{} {}", name_of(plugin.kind), plugin.name),
                Severity::problem,
                {},
                fmt::format("every job: {} selects it", plugin.variable),
                {}};
    const auto absent = std::find_if(examined.absent.begin(), examined.absent.end(), [&](const AbsentPlugin& one) {
        return one.kind == plugin.kind && one.name == plugin.name;
    });
    if (const PluginEntry* entry = find_entry(examined.plugins, plugin.kind, plugin.name)) {
        if (entry->usable()) return {check.subject, Severity::ok, entry->found.path, check.affects, {}};
        check.found = entry->refusal->text;
        check.remedy = remedy_for(*entry->refusal) + ", or select another plugin";
    } else if (absent != examined.absent.end()) {
        check.found = "absent: " + absent->why;
        check.remedy = fmt::format("change {}, or follow the reason above", plugin.variable);
    } else {
        check.found = fmt::format("no such plugin in {}", fmt::join(examined.plugin_folders, ", "));
        check.remedy = fmt::format("change {}, or add the plugin's folder to NPUSHMEM_PLUGIN_PATH", plugin.variable);
    }
    return check;
}

bool is_named(const std::vector<NamedPlugin>& named, PluginKind kind, const std::string& name) {
    return std::any_of(named.begin(), named.end(),
                       [&](const NamedPlugin& one) { return one.kind == kind && one.name == name; });
}

// Plugins of the same major version work together; functions that an older one lacks are replaced.
std::optional<Check> check_interface(const PluginEntry& entry) {
    const int ours = entry.found.kind == PluginKind::transport   ? NPUSHMEM_TRANSPORT_MINOR
                     : entry.found.kind == PluginKind::bootstrap ? NPUSHMEM_BOOTSTRAP_MINOR
                                                                 : NPUSHMEM_COLLECTIVES_MINOR;
    if (!entry.usable() || entry.minor == ours) return std::nullopt;
    return Check{
        fmt::format("{} {}", name_of(entry.found.kind), entry.found.name), Severity::note,
        fmt::format("built for interface {}.{}, the library has {}.{}", entry.major, entry.minor, entry.major, ours),
        entry.minor < ours ? "functions of the newer interface are emulated or missing"
                           : "functions that only the plugin knows are not used",
        fmt::format("build {} with the headers of this library", entry.found.path)};
}

}  // namespace

Check check_installation(const Examined& examined) {
    const ProgramFacts& library = examined.system.library;
    const ProgramFacts& launcher = examined.system.launcher;
    const std::string own =
        fmt::format("{}.{}.{}", library_version.major, library_version.minor, library_version.patch);
    Check check{"installation",
                Severity::ok,
                fmt::format("npushmem-info {}, library {} ({}), npushmem-run {}", own,
                            library.version.empty() ? "not found" : library.version,
                            library.path.empty() ? "libnpushmem.so" : library.path,
                            launcher.path.empty()      ? "not found"
                            : launcher.version.empty() ? "of unknown version"
                                                       : launcher.version),
                "programs that link the library, and jobs that npushmem-run starts",
                {}};
    const auto differs = [&own](const ProgramFacts& one) { return !one.version.empty() && one.version != own; };
    if (differs(library) || differs(launcher)) {
        check.severity = Severity::problem;
        check.remedy = "install library and programs of one version: cmake --install <build folder>";
    } else if (library.path.empty() || launcher.path.empty()) {
        check.severity = Severity::note;
        check.remedy = "install library and programs together: cmake --install <build folder>";
    }
    return check;
}

Check check_hwloc(const Examined& examined) {
    const topology::HwlocVersions& versions = examined.system.hwloc;
    Check check{"hwloc",
                Severity::ok,
                fmt::format("{}.{}, built with {}.{}", versions.loaded_major, versions.loaded_minor,
                            versions.built_major, versions.built_minor),
                "discovery of the machine and its NICs",
                {}};
    if (versions.loaded_major == versions.built_major) return check;
    check.severity = Severity::problem;
    check.remedy = fmt::format("install hwloc {}, or build npushmem again", versions.built_major);
    return check;
}

std::vector<Check> check_variables(const Examined& examined) {
    std::vector<Check> checks;
    for (const Status& error : examined.malformed)
        checks.push_back({"variable", Severity::problem, error.message(), "every job: it fails at start",
                          "correct or unset the variable; npushmem-info -c lists the accepted values"});
    for (const std::string& sentence : examined.unknown_variables)
        checks.push_back({"variable", Severity::note, sentence, "nothing reads the variable",
                          "correct the name, or unset the variable; npushmem-info -c lists all names"});
    if (checks.empty())
        checks.push_back(
            {"variables", Severity::ok, "all NPUSHMEM_* variables are known and well formed", "every job", {}});
    return checks;
}

std::vector<Check> check_previews(const Examined& examined) {
    std::vector<Check> checks;
    for (const Status& failure : examined.previews)
        checks.push_back({"choices of a job", Severity::problem, failure.message(), "every job: it fails at start",
                          "change the variable that the message names; npushmem-info -c lists them"});
    return checks;
}

Check check_plugin_folders(const Examined& examined) {
    const auto missing = missing_directories(examined.settings.plugin_path);
    if (!missing.empty())
        return {"plugin folders", Severity::note, fmt::format("{}", fmt::join(missing, "; ")),
                "plugins of that folder are not found", "correct NPUSHMEM_PLUGIN_PATH"};
    return {"plugin folders",
            Severity::ok,
            fmt::format("{}", fmt::join(examined.plugin_folders, ", ")),
            "which plugins are found",
            {}};
}

std::vector<Check> check_plugins(const Examined& examined) {
    std::vector<Check> checks;
    const auto named = named_plugins(examined.settings);
    for (const NamedPlugin& plugin : named) checks.push_back(check_selected_plugin(plugin, examined));
    if (!is_usable(examined.plugins, PluginKind::bootstrap, "uid") && !is_named(named, PluginKind::bootstrap, "uid"))
        checks.push_back({"bootstrap uid", Severity::problem, "not found, or refused", "every job of npushmem-run",
                          "install the plugins, or add their folder to NPUSHMEM_PLUGIN_PATH"});
    for (const PluginEntry& entry : examined.plugins) {
        if (!entry.usable() && !is_named(named, entry.found.kind, entry.found.name))
            checks.push_back({fmt::format("{} {}", name_of(entry.found.kind), entry.found.name), Severity::note,
                              entry.refusal->text, "jobs that select this plugin",
                              remedy_for(*entry.refusal) + ", or remove the plugin"});
        if (auto differs = check_interface(entry)) checks.push_back(*std::move(differs));
    }
    for (const AbsentPlugin& absent : examined.absent)
        if (find_entry(examined.plugins, absent.kind, absent.name) == nullptr &&
            !is_named(named, absent.kind, absent.name))
            checks.push_back({fmt::format("{} {}", name_of(absent.kind), absent.name), Severity::note,
                              "absent: " + absent.why, "jobs that select this plugin",
                              "follow the reason above if you need it"});
    return checks;
}

Check check_launchers(const Examined& examined) {
    const auto usable = [&](const char* bootstrap) {
        return is_usable(examined.plugins, PluginKind::bootstrap, bootstrap);
    };
    std::vector<std::string> found;
    if (!examined.system.launcher.path.empty())
        found.push_back(fmt::format("{} (bootstrap uid)", examined.system.launcher.path));
    bool unserved = false;
    for (const ProgramFacts& launcher : examined.system.launchers) {
        std::vector<std::string> bootstraps;
        const bool slurm = launcher.path.ends_with("/srun");
        for (const char* name : {"pmix", "pmi2", "pmi"})
            if (usable(name) && !(slurm && std::string_view(name) == "pmi")) bootstraps.emplace_back(name);
        unserved = unserved || bootstraps.empty();
        found.push_back(fmt::format("{} (bootstraps {})", launcher.path,
                                    bootstraps.empty() ? "none" : fmt::format("{}", fmt::join(bootstraps, ", "))));
    }
    Check check{"launchers",
                Severity::ok,
                found.empty() ? "none" : fmt::format("{}", fmt::join(found, "; ")),
                "how jobs are started",
                {}};
    if (found.empty()) check.severity = Severity::note, check.remedy = "install npushmem-run beside npushmem-info";
    if (unserved)
        check.severity = Severity::note, check.remedy = "use npushmem-run, or install the plugin pmix or pmi2";
    return check;
}

std::vector<Check> examine(const Examined& examined) {
    std::vector<Check> checks{check_installation(examined), check_hwloc(examined)};
    const auto append = [&checks](std::vector<Check> more) {
        std::move(more.begin(), more.end(), std::back_inserter(checks));
    };
    append(check_variables(examined));
    append(check_previews(examined));
    checks.push_back(check_plugin_folders(examined));
    append(check_plugins(examined));
    for (const auto check : {&check_shared_memory, &check_heap_memory, &check_heap_folder, &check_shm,
                             &check_address_space, &check_overcommit, &check_huge_pages, &check_cpus, &check_cpu_quota,
                             &check_open_files, &check_processes, &check_kernel, &check_ptrace, &check_rdma,
                             &check_locked_memory, &check_userfaultfd, &check_network, &check_launchers})
        checks.push_back(check(examined));
    return checks;
}

RemotePreview preview_remote_transport(const Settings& settings, std::span<const PluginEntry> plugins,
                                       const SystemFacts& system) {
    const std::string remote = lowercase(settings.remote_transport);
    if (remote.empty() || remote == "none") return {{}, "NPUSHMEM_REMOTE_TRANSPORT=none"};
    if (remote != "auto") return {settings.remote_transport, "NPUSHMEM_REMOTE_TRANSPORT"};
    std::string passed_over;
    const auto pass_over = [&passed_over](const std::string& name, const char* why) {
        passed_over += fmt::format("{}{} {}", passed_over.empty() ? "" : ", ", name, why);
    };
    const bool has_rdma =
        std::any_of(system.rdma.begin(), system.rdma.end(), [](const RdmaDevice& one) { return one.reason.empty(); });
    // As in a job: costs are compared only on hosts with a fabric device, and up to the first candidate that drives
    // NICs.
    std::vector<std::string> candidates;
    for (const std::string& name : split(settings.remote_order, ',')) {
        const PluginEntry* entry = find_entry(plugins, PluginKind::transport, name);
        if (entry == nullptr || !entry->usable()) {
            pass_over(name, "is no usable plugin");
        } else if (name == "verbs" && !has_rdma) {
            pass_over(name, system.rdma.empty() ? "has no device" : "cannot open its devices");
        } else {
            candidates.push_back(name);
            if (!system.has_fabric || (entry->capabilities & NPUSHMEM_CAP_DEVICES) != 0) break;
        }
    }
    if (candidates.empty())
        return {{}, fmt::format("auto: {}", passed_over.empty() ? "NPUSHMEM_REMOTE_ORDER is empty" : passed_over)};
    std::string why = "auto";
    if (candidates.size() > 1) why += ": by their costs";
    if (!passed_over.empty()) why += (candidates.size() > 1 ? "; " : ": ") + passed_over;
    return {fmt::format("{}", fmt::join(candidates, " or ")), why};
}

std::string_view name_of(Severity severity) {
    switch (severity) {
        case Severity::ok: return "ok";
        case Severity::note: return "note";
        case Severity::problem: return "problem";
    }
    return "unknown";
}

std::size_t count(std::span<const Check> checks, Severity severity) {
    return static_cast<std::size_t>(
        std::count_if(checks.begin(), checks.end(), [&](const Check& check) { return check.severity == severity; }));
}

const Check* first_problem(std::span<const Check> checks) {
    const auto found = std::find_if(checks.begin(), checks.end(),
                                    [](const Check& check) { return check.severity == Severity::problem; });
    return found == checks.end() ? nullptr : &*found;
}

std::string describe(std::span<const Check> checks) {
    std::string text;
    for (const Check& check : checks) {
        text += fmt::format("{:<8} {}: {}\n", name_of(check.severity), check.subject, check.found);
        if (check.severity == Severity::ok) {
            if (!check.remedy.empty()) text += fmt::format("         for better {}: {}\n", check.affects, check.remedy);
            continue;
        }
        text += fmt::format("         affects: {}\n", check.affects);
        if (!check.remedy.empty()) text += fmt::format("         to do: {}\n", check.remedy);
    }
    return text + fmt::format("{}, {}\n", topology::counted(count(checks, Severity::problem), "problem"),
                              topology::counted(count(checks, Severity::note), "note"));
}

}  // namespace npushmem::info
