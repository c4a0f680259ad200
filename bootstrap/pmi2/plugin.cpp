// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `pmi2`: ranks started by a launcher that uses the PMI-2 wire protocol.
#include <memory>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/pmi2/pmi2_client.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::pmi2 {

class Pmi2Bootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

namespace {

constexpr int priority_below_pmi = 5;  // launchers that offer both are tested more often with PMI-1

launcher::ProcessSingleton<Pmi2Client>& client_of_process() {
    static launcher::ProcessSingleton<Pmi2Client> client;
    return client;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> Pmi2Bootstrap::open(const Host& host, const npushmem_bootstrap_params&) {
    return launcher::open_pmi_job(client_of_process(), host);
}

int Pmi2Bootstrap::recognise(const Host&, const npushmem_bootstrap_params&, std::string& why) {
    if (!ProcessEnvironment().get("PMI_FD") || launcher::mpi_is_running()) return 0;
    why = "PMI_FD is set";
    return NPUSHMEM_RECOGNISED_LAUNCHER - priority_below_pmi;
}

}  // namespace npushmem::pmi2

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::pmi2::Pmi2Bootstrap, "pmi2",
                                      "PMI-2 launchers: srun --mpi=pmi2, MPICH's mpiexec",
                                      npushmem::rendezvous::launched_config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
