#include "core/plugin/bootstrap_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "core/base/parse.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_host.hpp"

namespace npushmem {
namespace {

// A variable that a launcher leaves in the environment whether or not a bootstrap can talk to it.
struct LauncherSign {
    const char* variable;
    bool counts;           // its value is the number of processes
    const char* launcher;  // null: none
    const char* remedy;
};
// The first that is set decides. Those that count come first.
constexpr std::array signs{
    LauncherSign{"OMPI_COMM_WORLD_SIZE", true, "mpirun of Open MPI", "the bootstrap for it is pmix"},
    LauncherSign{"PMI_SIZE", true, "a PMI launcher", "the bootstraps for it are pmi and pmi2"},
    LauncherSign{"SLURM_STEP_NUM_TASKS", true, "srun", "start with srun --mpi=pmi2 or --mpi=pmix"},
    LauncherSign{"PMIX_NAMESPACE", false, "a PMIx launcher", "the bootstrap for it is pmix"},
    LauncherSign{"PMI_PORT", false, "a PMI launcher", "the bootstrap for it is pmi"},
    LauncherSign{"PMI_FD", false, "a PMI launcher", "the bootstraps for it are pmi and pmi2"},
};
constexpr LauncherSign own_launcher{"NPUSHMEM_NPES", true, "npushmem-run", "the bootstrap for it is uid"};
// The user wants several processes and has started this one without a launcher that is known.
constexpr LauncherSign requested_number{"NPUSHMEM_NPES", true, nullptr,
                                        "start the program with npushmem-run, or unset NPUSHMEM_NPES"};
constexpr int most_processes = 1 << 30;

// What a sign says of this process.
struct Launched {
    const LauncherSign* sign;
    std::int64_t count;  // of processes; 0: the sign does not say
};

std::string describe(const Launched& launched) {
    if (launched.sign->launcher == nullptr) return fmt::format("{} is {}", launched.sign->variable, launched.count);
    const std::string number = launched.count == 0 ? "" : fmt::format(" as one of {}", launched.count);
    return fmt::format("{} has started this process{} ({} is set)", launched.sign->launcher, number,
                       launched.sign->variable);
}

std::optional<Launched> read_sign(const LauncherSign& sign, const Environment& environment) {
    const auto text = environment.get(sign.variable);
    if (!text) return std::nullopt;
    if (!sign.counts) return Launched{&sign, 0};
    const auto count = parse_integer(*text, 1, most_processes);
    return count.ok() ? std::optional(Launched{&sign, count.value()}) : std::nullopt;
}

// The launcher that has started several processes, as far as its signs say; none for a process that is alone.
std::optional<Launched> launcher_of_several(const Environment& environment) {
    for (const LauncherSign& sign : signs)
        if (const auto launched = read_sign(sign, environment))
            return launched->count == 1 ? std::nullopt : std::optional(*launched);
    return std::nullopt;
}

constexpr const char* how_to_be_alone =
    "NPUSHMEM_BOOTSTRAP=UID with NPUSHMEM_NPES=1 makes each process a job of its own";

Status lost_launcher(const Environment& environment) {
    const auto launched = launcher_of_several(environment);
    if (!launched) return {};
    return {Code::config, fmt::format("{}, but no bootstrap here can talk to it: {}; npushmem-info -p shows which "
                                      "bootstraps there are, and {}",
                                      describe(*launched), launched->sign->remedy, how_to_be_alone)};
}

BootstrapChoice ask(std::shared_ptr<const LoadedBootstrap> plugin, const Environment& environment,
                    const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const PluginHost its_host(host, plugin->config_rows(), environment);
    npushmem_bootstrap_params own = params;
    own.struct_size = sizeof own;
    npushmem_error why{};
    const int sure = plugin->table().recognise(&its_host.table(), &own, &why);
    return {std::move(plugin), text_of(why.message), sure};
}

std::string value_of(const npushmem_host& host, const char* name) {
    const char* const value = host.config != nullptr ? host.config(host.context, name) : nullptr;
    return value != nullptr ? value : "";
}

bool id_is_given(const npushmem_host& host, const npushmem_bootstrap_params& params) {
    return params.uniqueid != nullptr || !value_of(host, "UNIQUEID").empty();
}

// A bootstrap that has recognised a launcher knows better than any variable how many processes there are.
bool has_asked_the_launcher(const BootstrapChoice& choice) {
    return choice.sure > NPUSHMEM_RECOGNISED_NOTHING && choice.sure < NPUSHMEM_RECOGNISED_LIBRARY;
}

std::optional<Launched> ignored_launcher(const Environment& environment, const npushmem_host& host) {
    const auto told = parse_integer(value_of(host, "NPES"), 1, most_processes);
    if (!told.ok()) return launcher_of_several(environment);
    if (told.value() == 1) return std::nullopt;
    if (environment.get("NPUSHMEM_LAUNCHER_FD")) return Launched{&own_launcher, told.value()};
    const auto launched = launcher_of_several(environment);
    return launched ? launched : std::optional(Launched{&requested_number, told.value()});
}

std::string advice(const BootstrapChoice& choice, const LauncherSign& sign) {
    if (sign.launcher == nullptr) return sign.remedy;
    if (choice.sure >= NPUSHMEM_RECOGNISED_LIBRARY)
        return "the library that runs in this program is not the launcher's: start the program with its own launcher";
    return fmt::format("unset NPUSHMEM_BOOTSTRAP to use the launcher: {}", sign.remedy);
}

}  // namespace

Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params) {
    if (id_is_given(host, params)) {
        auto loaded = load_bootstrap(finder, id_bootstrap);
        if (!loaded.ok()) return loaded.status();
        return BootstrapChoice{loaded.value(), "there is a unique id", NPUSHMEM_RECOGNISED_BY_USER};
    }
    BootstrapChoice best;
    for (const auto& found : finder.scan(PluginKind::bootstrap)) {
        auto loaded = load_bootstrap(finder, found.path);
        if (!loaded.ok()) continue;  // nobody asked for it; npushmem-info shows why
        BootstrapChoice answer = ask(std::move(loaded).value(), environment, host, params);
        if (answer.sure > best.sure) best = std::move(answer);
    }
    if (best.sure <= NPUSHMEM_RECOGNISED_NOTHING)
        if (Status lost = lost_launcher(environment); !lost.ok()) return lost;
    if (best.plugin == nullptr) return load_bootstrap(finder, id_bootstrap).status();
    return best;
}

Result<BootstrapChoice> named_bootstrap(const PluginFinder& finder, const std::string& name,
                                        const Environment& environment, const npushmem_host& host,
                                        const npushmem_bootstrap_params& params) {
    auto loaded = load_bootstrap(finder, name);
    if (!loaded.ok()) return loaded.status();
    BootstrapChoice choice = ask(std::move(loaded).value(), environment, host, params);
    choice.why.clear();
    return choice;
}

Status check_job_of_one(const BootstrapChoice& choice, int nranks, const Environment& environment,
                        const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const bool asked_for =
        choice.sure >= NPUSHMEM_RECOGNISED_BY_USER || id_is_given(host, params) || params.attribute != nullptr;
    if (nranks != 1 || asked_for || has_asked_the_launcher(choice)) return {};
    const auto launched = ignored_launcher(environment, host);
    if (!launched) return {};
    return {Code::config,
            fmt::format("{}, but bootstrap {} ignores that and has made a job of this process alone; {}; {}",
                        describe(*launched), choice.plugin->name(), advice(choice, *launched->sign), how_to_be_alone)};
}

}  // namespace npushmem
