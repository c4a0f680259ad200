// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `pmi`: ranks started by a launcher that uses the PMI-1 wire protocol.
#include <memory>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/pmi/pmi_client.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::pmi {

class PmiBootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

namespace {

launcher::ProcessSingleton<PmiClient>& client_of_process() {
    static launcher::ProcessSingleton<PmiClient> client;
    return client;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> PmiBootstrap::open(const Host& host, const npushmem_bootstrap_params&) {
    return launcher::open_pmi_job(client_of_process(), host);
}

int PmiBootstrap::recognise(const Host&, const npushmem_bootstrap_params&, std::string& why) {
    const ProcessEnvironment environment;
    for (const char* sign : {"PMI_FD", "PMI_PORT"})
        if (why.empty() && environment.get(sign)) why = std::string(sign) + " is set";
    return why.empty() || launcher::mpi_is_running() ? 0 : NPUSHMEM_RECOGNISED_LAUNCHER;
}

}  // namespace npushmem::pmi

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::pmi::PmiBootstrap, "pmi",
                                      "PMI-1 launchers: MPICH's mpiexec, srun --mpi=pmi2",
                                      npushmem::rendezvous::launched_config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
