// SPDX-License-Identifier: BSD-3-Clause
// The library of collectives `mpi`: those of the MPI that runs in this process.
#include "collectives/mpi/mpi_process.hpp"
#include "core/base/parse.hpp"
#include "npushmem/plugin/collectives_export.hpp"

namespace npushmem::mpi {

namespace {

constexpr npushmem_config_row rows[] = {{"COLL_MPI_ONE_THREAD", "0", "bool",
                                         "accept an MPI without MPI_THREAD_MULTIPLE: one thread makes all calls of MPI "
                                         "and all collective calls, none of them "
                                         "on a stream"}};

}  // namespace

struct MpiPlugin {
    static Result<std::unique_ptr<Collectives>> open(const Host& host, const npushmem_collectives_params& params) {
        const auto one_thread = parse_bool(host.config(rows[0].name, rows[0].default_value));
        if (!one_thread.ok()) return one_thread.status().within("NPUSHMEM_COLL_MPI_ONE_THREAD");
        return collectives_of_process({params.npes, one_thread.value()});
    }
};

}  // namespace npushmem::mpi

NPUSHMEM_EXPORT_COLLECTIVES_WITH_CONFIG(npushmem::mpi::MpiPlugin, "mpi",
                                        "collectives of a running MPI (Open MPI, MPICH)", npushmem::mpi::rows, 1);
