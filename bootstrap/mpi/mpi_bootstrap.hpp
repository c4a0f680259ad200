// The bootstrap `mpi`: the ranks of a communicator of the MPI that runs in this process, or that is started for it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::mpi {

std::span<const npushmem_config_row> config_rows();

class MpiBootstrap {
public:
    // The attribute is a pointer to an MPI_Comm; without one, it is MPI_COMM_WORLD.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::mpi
