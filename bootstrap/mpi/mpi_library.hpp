// SPDX-License-Identifier: BSD-3-Clause
// The MPI that is loaded into this process, or that is started for it.
#pragma once

#include <memory>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"

namespace npushmem::mpi {

// Any MPI that is loaded into this process.
class MpiLibrary {
public:
    MpiLibrary() = default;
    MpiLibrary(const MpiLibrary&) = delete;
    MpiLibrary& operator=(const MpiLibrary&) = delete;
    virtual ~MpiLibrary() = default;

    // Code::unsupported for an MPI whose headers this plugin was built without.
    static Result<std::unique_ptr<MpiLibrary>> of_process();

    // Returns a communicator as the launcher of its ranks. `handle` points to the program's MPI_Comm; null:
    // MPI_COMM_WORLD.
    virtual Result<std::unique_ptr<launcher::Launcher>> communicator(const void* handle) = 0;
    virtual Status init() = 0;
    virtual void finalize() = 0;
};

// Each is defined in a source that is compiled with that library's header.
Result<std::unique_ptr<MpiLibrary>> make_openmpi_library();
Result<std::unique_ptr<MpiLibrary>> make_mpich_library();

// An MPI that npushmem has started at the program's request. A process can start MPI only once, so it ends with the
// process.
class StartedMpi {
public:
    // Loads `file` if the process has no MPI yet; empty: the library of the launcher that started the process.
    static Result<StartedMpi> begin(const std::string& file);
    void end() { library_->finalize(); }

private:
    explicit StartedMpi(std::unique_ptr<MpiLibrary> library) : library_(std::move(library)) {}

    std::unique_ptr<MpiLibrary> library_;
};

}  // namespace npushmem::mpi
