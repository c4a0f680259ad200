// Jobs of launchers that use a PMI wire protocol.
#pragma once

#include <memory>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/process_singleton.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/config.hpp"

namespace npushmem::launcher {

// Is any MPI library running in this process: has MPI_Init returned, and MPI_Finalize not been called? Links none.
bool mpi_is_running();

// Opens a job of a plugin that uses a PMI wire protocol. Client: a Launcher as for ProcessSingleton, begun with the
// environment and a deadline. Collective.
template <class Client>
Result<std::unique_ptr<Bootstrap>> open_pmi_job(ProcessSingleton<Client>& client_of_process, const Host& host) {
    if (mpi_is_running())
        return Status{Code::state,
                      "MPI runs in this process and owns its connection to the launcher; use "
                      "NPUSHMEM_BOOTSTRAP=MPI"};
    const auto settings = rendezvous::Settings::read(host);
    const auto timeout = (settings.ok() ? settings.value() : rendezvous::Settings::reporting_defaults(host)).timeout;
    return client_of_process.with([&] { return Client::begin(ProcessEnvironment(), Deadline::after(timeout)); },
                                  [&](Client& client) { return join_launched_job(host, client); });
}

}  // namespace npushmem::launcher
