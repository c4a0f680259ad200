// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `pmix`: ranks started by a launcher with a PMIx server, through the PMIx library.
#include <memory>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/process_singleton.hpp"
#include "bootstrap/pmix/pmix_client.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/config.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::pmix {

class PmixBootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

namespace {

constexpr int priority_bonus = 5;  // over PMI-1 and PMI-2 of the same launcher

launcher::ProcessSingleton<PmixClient>& client_of_process() {
    static launcher::ProcessSingleton<PmixClient> client;
    return client;
}

bool started_by_pmix() {
    const ProcessEnvironment environment;
    return environment.get("PMIX_NAMESPACE") && environment.get("PMIX_RANK");
}

}  // namespace

// MPI may run in this process too: PMIx's library counts its users.
Result<std::unique_ptr<Bootstrap>> PmixBootstrap::open(const Host& host, const npushmem_bootstrap_params&) {
    // Checked first, because the library would wait for a server that does not exist.
    if (!started_by_pmix())
        return Status{Code::config,
                      "PMIX_NAMESPACE and PMIX_RANK are not set: no PMIx launcher has started this "
                      "process; start it with mpirun of Open MPI or srun --mpi=pmix, or choose another "
                      "NPUSHMEM_BOOTSTRAP"};
    return client_of_process().with([] { return PmixClient::begin(); },
                                    [&](PmixClient& client) { return launcher::join_launched_job(host, client); });
}

int PmixBootstrap::recognise(const Host&, const npushmem_bootstrap_params&, std::string& why) {
    if (!started_by_pmix()) return 0;
    why = "PMIX_NAMESPACE is set";
    return NPUSHMEM_RECOGNISED_LAUNCHER + priority_bonus;
}

}  // namespace npushmem::pmix

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::pmix::PmixBootstrap, "pmix",
                                      "PMIx launchers: Open MPI's mpirun, srun --mpi=pmix",
                                      npushmem::rendezvous::launched_config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
