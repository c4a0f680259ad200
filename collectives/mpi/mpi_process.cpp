// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/mpi/mpi_process.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <vector>

namespace npushmem::mpi {

namespace {

// MPI allows these two at any time.
bool ask(const char* name) {
    const auto function = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, name));
    int answer = 0;
    return function != nullptr && function(&answer) == 0 && answer != 0;
}

// The first line of the library's text, "Open MPI v4.1.4" or "MPICH 4.0.2". Empty without an MPI in the process.
std::string version_of_process() {
    const auto get = reinterpret_cast<int (*)(char*, int*)>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
    constexpr std::size_t longest = 16384;  // every MPI writes less
    std::vector<char> text(longest);
    int length = 0;
    if (get == nullptr || get(text.data(), &length) != 0) return {};
    const std::string_view line(text.data());
    std::istringstream words{std::string(line.substr(0, line.find_first_of(",\n")))};
    std::string out;
    for (std::string word; words >> word;)
        if (word != "Version:") out += (out.empty() ? "" : " ") + word;
    return out;
}

}  // namespace

Result<std::unique_ptr<Collectives>> collectives_of_process(const JobShape& job) {
    if (!ask("MPI_Initialized"))
        return Status{Code::state,
                      "MPI does not run in this process: call MPI_Init_thread before npushmem's start, or start the "
                      "program by mpirun with NPUSHMEM_BOOTSTRAP=mpi NPUSHMEM_BOOTSTRAP_MPI_INIT=1"};
    if (ask("MPI_Finalized"))
        return Status{Code::state, "MPI has ended in this process: call MPI_Finalize after npushmem's end"};
    const std::string version = version_of_process();
#ifdef NPUSHMEM_HAS_OPENMPI
    if (version.starts_with("Open MPI")) return make_openmpi_collectives(job, version);
#endif
#ifdef NPUSHMEM_HAS_MPICH
    if (version.starts_with("MPICH")) return make_mpich_collectives(job, version);
#endif
    return Status{Code::unsupported,
                  fmt::format("this process uses '{}', whose mpi.h was missing when the plugin was built", version)};
}

}  // namespace npushmem::mpi
