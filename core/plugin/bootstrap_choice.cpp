#include "core/plugin/bootstrap_choice.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/parse.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_host.hpp"

namespace npushmem {
namespace {

// What launchers leave in the environment whether or not a bootstrap can talk to them: the number of processes.
struct Trace {
    const char* variable;
    const char* launcher;
    const char* remedy;
};
constexpr std::array traces{
    Trace{"OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI", "the bootstrap for it is pmix"},
    Trace{"PMI_SIZE", "a PMI launcher", "the bootstraps for it are pmi and pmi2"},
    Trace{"SLURM_STEP_NUM_TASKS", "srun", "start with srun --mpi=pmi2 or --mpi=pmix"},
};

Status lost_launcher(const Environment& environment) {
    for (const Trace& trace : traces) {
        const auto text = environment.get(trace.variable);
        if (!text) continue;
        const auto count = parse_integer(*text, 1, 1 << 30);
        if (!count.ok() || count.value() == 1) continue;
        return {
            Code::config,
            fmt::format("{} has started this process as one of {} ({} is set), but no bootstrap here can talk to it: "
                        "{}; npushmem-info -p shows which bootstraps there are, and NPUSHMEM_BOOTSTRAP=UID makes "
                        "each process a job of its own",
                        trace.launcher, count.value(), trace.variable, trace.remedy)};
    }
    return {};
}

struct Answer {
    int sure = 0;
    std::string why;
};

Answer ask(const LoadedBootstrap& plugin, const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const PluginHost its_host(host, plugin.config_rows());
    npushmem_bootstrap_params own = params;
    own.struct_size = sizeof own;
    npushmem_error why{};
    Answer answer;
    answer.sure = plugin.table().recognise(&its_host.table(), &own, &why);
    answer.why = text_of(why.message);
    return answer;
}

bool id_is_given(const npushmem_host& host, const npushmem_bootstrap_params& params) {
    const char* const digits = host.config != nullptr ? host.config(host.context, "UNIQUEID") : nullptr;
    return params.uniqueid != nullptr || (digits != nullptr && *digits != '\0');
}

}  // namespace

Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params) {
    if (id_is_given(host, params)) {
        auto loaded = load_bootstrap(finder, id_bootstrap);
        return loaded.ok() ? Result<BootstrapChoice>(BootstrapChoice{loaded.value(), "there is a unique id"})
                           : Result<BootstrapChoice>(loaded.status());
    }
    BootstrapChoice best;
    Answer surest;
    for (const auto& found : finder.scan(PluginKind::bootstrap)) {
        auto loaded = load_bootstrap(finder, found.path);
        if (!loaded.ok()) continue;  // nobody asked for it; npushmem-info shows why
        const Answer answer = ask(*loaded.value(), host, params);
        if (answer.sure <= surest.sure) continue;
        surest = answer;
        best = {loaded.value(), answer.why};
    }
    if (surest.sure <= NPUSHMEM_RECOGNISED_NOTHING)
        if (Status lost = lost_launcher(environment); !lost.ok()) return lost;
    if (best.plugin == nullptr) return load_bootstrap(finder, id_bootstrap).status();
    return best;
}

}  // namespace npushmem
