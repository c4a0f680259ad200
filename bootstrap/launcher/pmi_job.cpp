#include "bootstrap/launcher/pmi_job.hpp"

#include <dlfcn.h>

namespace npushmem::launcher {

namespace {

// MPI_Initialized and MPI_Finalized have this signature in every MPI.
bool ask(const char* function) {
    using Question = int (*)(int*);
    const auto question = reinterpret_cast<Question>(::dlsym(RTLD_DEFAULT, function));
    int answer = 0;
    return question != nullptr && question(&answer) == 0 && answer != 0;
}

}  // namespace

bool mpi_is_running() { return ask("MPI_Initialized") && !ask("MPI_Finalized"); }

}  // namespace npushmem::launcher
