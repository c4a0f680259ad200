// An MPI that was started because the program asked npushmem to. MPI can be started once in a process's life, so it
// ends with the process.
#pragma once

#include <memory>
#include <string>

#include "bootstrap/mpi/mpi_library.hpp"

namespace npushmem::mpi {

class StartedMpi {
public:
    // Loads `file` if the process has no MPI yet; empty: the library that goes with what has started the process.
    static Result<StartedMpi> begin(const std::string& file);
    void end() { library_->finalize(); }

private:
    explicit StartedMpi(std::unique_ptr<MpiLibrary> library) : library_(std::move(library)) {}

    std::unique_ptr<MpiLibrary> library_;
};

}  // namespace npushmem::mpi
