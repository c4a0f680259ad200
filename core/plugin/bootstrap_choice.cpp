// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/bootstrap_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "core/base/parse.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"

namespace npushmem {
namespace {

// A variable that a launcher sets in the environment, whether or not a bootstrap supports the launcher.
struct LauncherVariable {
    const char* variable;
    bool counts;           // its value is the number of processes
    const char* launcher;  // null: none
    const char* remedy;
};
// The first variable that is set decides. Variables with a count come first.
constexpr std::array launcher_variables{
    LauncherVariable{"OMPI_COMM_WORLD_SIZE", true, "mpirun of Open MPI", "the bootstrap for it is pmix"},
    LauncherVariable{"PMI_SIZE", true, "a PMI launcher", "the bootstraps for it are pmi and pmi2"},
    LauncherVariable{"SLURM_STEP_NUM_TASKS", true, "srun", "start with srun --mpi=pmi2 or --mpi=pmix"},
    LauncherVariable{"PMIX_NAMESPACE", false, "a PMIx launcher", "the bootstrap for it is pmix"},
    LauncherVariable{"PMI_PORT", false, "a PMI launcher", "the bootstrap for it is pmi"},
    LauncherVariable{"PMI_FD", false, "a PMI launcher", "the bootstraps for it are pmi and pmi2"},
};
constexpr LauncherVariable own_launcher{"NPUSHMEM_NPES", true, "npushmem-run", "the bootstrap for it is uid"};
// The user requests several processes and started this one without a known launcher.
constexpr LauncherVariable requested_number{"NPUSHMEM_NPES", true, nullptr,
                                            "start the program with npushmem-run, or unset NPUSHMEM_NPES"};
constexpr int max_processes = 1 << 30;

// The launcher of this process, according to one row.
struct DetectedLauncher {
    const LauncherVariable* row;
    std::int64_t count;  // of processes; 0: unknown
};

std::string describe(const DetectedLauncher& detected) {
    if (detected.row->launcher == nullptr) return fmt::format("{} is {}", detected.row->variable, detected.count);
    const std::string number = detected.count == 0 ? "" : fmt::format(" as one of {}", detected.count);
    return fmt::format("{} has started this process{} ({} is set)", detected.row->launcher, number,
                       detected.row->variable);
}

std::optional<DetectedLauncher> detect_launcher(const LauncherVariable& row, const Environment& environment) {
    const auto text = environment.get(row.variable);
    if (!text) return std::nullopt;
    if (!row.counts) return DetectedLauncher{&row, 0};
    const auto count = parse_integer(*text, 1, max_processes);
    return count.ok() ? std::optional(DetectedLauncher{&row, count.value()}) : std::nullopt;
}

// Returns the launcher that started several processes, as far as the environment shows; none for a single process.
std::optional<DetectedLauncher> launcher_of_several(const Environment& environment) {
    for (const LauncherVariable& row : launcher_variables)
        if (const auto detected = detect_launcher(row, environment))
            return detected->count == 1 ? std::nullopt : std::optional(*detected);
    return std::nullopt;
}

constexpr const char* single_process_hint =
    "NPUSHMEM_BOOTSTRAP=UID with NPUSHMEM_NPES=1 makes each process a job of its own";

Status check_unserved_launcher(const Environment& environment) {
    const auto detected = launcher_of_several(environment);
    if (!detected) return {};
    return {Code::config, fmt::format("{}, but no bootstrap here can talk to it: {}; npushmem-info -p shows which "
                                      "bootstraps there are, and {}",
                                      describe(*detected), detected->row->remedy, single_process_hint)};
}

BootstrapChoice query_plugin(std::shared_ptr<const LoadedBootstrap> plugin, const Environment& environment,
                             const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const PluginHost its_host(host, plugin->config_rows(), environment);
    npushmem_bootstrap_params own = params;
    own.struct_size = sizeof own;
    npushmem_error why{};
    const int confidence = plugin->table().recognise(&its_host.table(), &own, &why);
    return {std::move(plugin), text_of(why.message), confidence};
}

std::string value_of(const npushmem_host& host, const char* name) {
    const char* const value = host.config != nullptr ? host.config(host.context, name) : nullptr;
    return value != nullptr ? value : "";
}

bool has_unique_id(const npushmem_host& host, const npushmem_bootstrap_params& params) {
    return params.uniqueid != nullptr || !value_of(host, "UNIQUEID").empty();
}

// A bootstrap that recognised a launcher knows the number of processes better than any variable.
bool has_detected_launcher(const BootstrapChoice& choice) {
    return choice.confidence > NPUSHMEM_RECOGNISED_NOTHING && choice.confidence < NPUSHMEM_RECOGNISED_LIBRARY;
}

std::optional<DetectedLauncher> ignored_launcher(const Environment& environment, const npushmem_host& host) {
    const auto requested = parse_integer(value_of(host, "NPES"), 1, max_processes);
    if (!requested.ok()) return launcher_of_several(environment);
    if (requested.value() == 1) return std::nullopt;
    if (environment.get("NPUSHMEM_LAUNCHER_FD")) return DetectedLauncher{&own_launcher, requested.value()};
    const auto detected = launcher_of_several(environment);
    return detected ? detected : std::optional(DetectedLauncher{&requested_number, requested.value()});
}

std::string advice(const BootstrapChoice& choice, const LauncherVariable& row) {
    if (row.launcher == nullptr) return row.remedy;
    if (choice.confidence >= NPUSHMEM_RECOGNISED_LIBRARY)
        return "the library that runs in this program is not the launcher's: start the program with its own launcher";
    return fmt::format("unset NPUSHMEM_BOOTSTRAP to use the launcher: {}", row.remedy);
}

}  // namespace

Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params) {
    if (has_unique_id(host, params)) {
        auto loaded = load_bootstrap(finder, id_bootstrap);
        if (!loaded.ok()) return loaded.status();
        return BootstrapChoice{loaded.value(), "there is a unique id", NPUSHMEM_RECOGNISED_BY_USER};
    }
    BootstrapChoice best;
    for (const auto& found : finder.scan(PluginKind::bootstrap)) {
        auto loaded = load_bootstrap(finder, found.path);
        if (!loaded.ok()) continue;  // not requested by the user; npushmem-info shows the reason
        BootstrapChoice answer = query_plugin(std::move(loaded).value(), environment, host, params);
        if (answer.confidence > best.confidence) best = std::move(answer);
    }
    if (best.confidence <= NPUSHMEM_RECOGNISED_NOTHING)
        if (Status unserved = check_unserved_launcher(environment); !unserved.ok()) return unserved;
    if (best.plugin == nullptr) return load_bootstrap(finder, id_bootstrap).status();
    return best;
}

Result<BootstrapChoice> named_bootstrap(const PluginFinder& finder, const std::string& name,
                                        const Environment& environment, const npushmem_host& host,
                                        const npushmem_bootstrap_params& params) {
    auto loaded = load_bootstrap(finder, name);
    if (!loaded.ok()) return loaded.status();
    BootstrapChoice choice = query_plugin(std::move(loaded).value(), environment, host, params);
    choice.why.clear();
    return choice;
}

Status check_single_process_job(const BootstrapChoice& choice, int nranks, const Environment& environment,
                                const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const bool requested =
        choice.confidence >= NPUSHMEM_RECOGNISED_BY_USER || has_unique_id(host, params) || params.attribute != nullptr;
    if (nranks != 1 || requested || has_detected_launcher(choice)) return {};
    const auto detected = ignored_launcher(environment, host);
    if (!detected) return {};
    return {
        Code::config,
        fmt::format("{}, but bootstrap {} ignores that and has made a job of this process alone; {}; {}",
                    describe(*detected), choice.plugin->name(), advice(choice, *detected->row), single_process_hint)};
}

}  // namespace npushmem
