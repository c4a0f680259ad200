#include "bootstrap/pmi/pmi_bootstrap.hpp"

#include "bootstrap/launcher/pmi_job.hpp"
#include "bootstrap/pmi/pmi_client.hpp"

namespace npushmem::pmi {
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
