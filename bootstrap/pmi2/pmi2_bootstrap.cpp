#include "bootstrap/pmi2/pmi2_bootstrap.hpp"

#include "bootstrap/launcher/pmi_job.hpp"
#include "bootstrap/pmi2/pmi2_client.hpp"

namespace npushmem::pmi2 {
namespace {

constexpr int priority_below_pmi = 5;  // a launcher that offers both is tested more often with PMI-1

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
