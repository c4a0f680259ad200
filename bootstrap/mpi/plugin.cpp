// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `mpi`: the ranks of a communicator of the MPI that runs in this process, or that is started for it.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/process_singleton.hpp"
#include "bootstrap/mpi/mpi_library.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/parse.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::mpi {

std::span<const npushmem_config_row> config_rows();

class MpiBootstrap {
public:
    // The attribute is a pointer to an MPI_Comm; without one, it is MPI_COMM_WORLD.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

namespace {

constexpr npushmem_config_row init_row{"BOOTSTRAP_MPI_INIT", "0", "bool",
                                       "call MPI_Init if the program has not, and MPI_Finalize when it ends"};
constexpr npushmem_config_row library_row{"BOOTSTRAP_MPI_LIBRARY", "", "string",
                                          "file of the MPI library to load with BOOTSTRAP_MPI_INIT in a program "
                                          "without one; empty: the library of its launcher"};

launcher::ProcessSingleton<StartedMpi>& started_mpi() {
    static launcher::ProcessSingleton<StartedMpi> started;
    return started;
}

Result<std::unique_ptr<Bootstrap>> join(const Host& host, const npushmem_bootstrap_params& params) {
    auto library = MpiLibrary::of_process();
    if (!library.ok()) return library.status();
    auto communicator = library.value()->communicator(params.attribute);
    if (!communicator.ok()) return communicator.status();
    return launcher::join_launched_job(host, *communicator.value());
}

}  // namespace

std::span<const npushmem_config_row> config_rows() {
    static const std::vector<npushmem_config_row> rows = [] {
        const auto common = rendezvous::launched_config_rows();
        std::vector<npushmem_config_row> all(common.begin(), common.end());
        all.push_back(init_row);
        all.push_back(library_row);
        return all;
    }();
    return rows;
}

Result<std::unique_ptr<Bootstrap>> MpiBootstrap::open(const Host& host, const npushmem_bootstrap_params& params) {
    if (launcher::mpi_is_running()) return join(host, params);
    const auto may_start = parse_bool(host.config(init_row.name, "0"));
    if (!may_start.ok()) return may_start.status().within("NPUSHMEM_BOOTSTRAP_MPI_INIT");
    if (!may_start.value())
        return Status{Code::state,
                      "MPI does not run in this process: call MPI_Init before npushmem's start and "
                      "MPI_Finalize after its end, or set NPUSHMEM_BOOTSTRAP_MPI_INIT=1"};
    return started_mpi().with([&] { return StartedMpi::begin(host.config(library_row.name)); },
                              [&](StartedMpi&) { return join(host, params); });
}

int MpiBootstrap::recognise(const Host&, const npushmem_bootstrap_params& params, std::string& why) {
    if (!launcher::mpi_is_running()) return 0;
    why = params.attribute != nullptr ? "the program gave a communicator" : "MPI runs in this process";
    return params.attribute != nullptr ? NPUSHMEM_RECOGNISED_BY_USER : NPUSHMEM_RECOGNISED_LIBRARY;
}

}  // namespace npushmem::mpi

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::mpi::MpiBootstrap, "mpi",
                                      "a communicator of a running MPI program (Open MPI, MPICH)",
                                      npushmem::mpi::config_rows().data(),
                                      static_cast<uint32_t>(npushmem::mpi::config_rows().size()));
