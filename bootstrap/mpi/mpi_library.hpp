// The MPI that is loaded into this process, whichever it is.
#pragma once

#include <memory>

#include "bootstrap/launcher/launcher.hpp"

namespace npushmem::mpi {

class MpiLibrary {
public:
    MpiLibrary() = default;
    MpiLibrary(const MpiLibrary&) = delete;
    MpiLibrary& operator=(const MpiLibrary&) = delete;
    virtual ~MpiLibrary() = default;

    // Code::unsupported for an MPI whose headers this plugin was built without.
    static Result<std::unique_ptr<MpiLibrary>> of_process();

    // A communicator as what has started its ranks. `handle` points to the program's MPI_Comm; null: MPI_COMM_WORLD.
    virtual Result<std::unique_ptr<launcher::Launcher>> communicator(const void* handle) = 0;
    virtual Status init() = 0;
    virtual void finalize() = 0;
};

// Each from a source that is compiled with that library's header.
Result<std::unique_ptr<MpiLibrary>> make_openmpi_library();
Result<std::unique_ptr<MpiLibrary>> make_mpich_library();

}  // namespace npushmem::mpi
