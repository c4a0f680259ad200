#include "bootstrap/mpi/mpi_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace npushmem::mpi {
namespace {

// May be called before MPI_Init. Empty without an MPI in the process.
std::string version_of_process() {
    using Ask = int (*)(char*, int*);
    const auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
    constexpr std::size_t longest = 16384;  // no MPI writes more
    const auto text = std::make_unique<std::array<char, longest>>();
    int length = 0;
    if (ask == nullptr || ask(text->data(), &length) != 0) return {};
    return std::string(text->data());
}

}  // namespace

Result<std::unique_ptr<MpiLibrary>> MpiLibrary::of_process() {
    const std::string version = version_of_process();
#ifdef NPUSHMEM_HAS_OPENMPI
    if (version.starts_with("Open MPI")) return make_openmpi_library();
#endif
#ifdef NPUSHMEM_HAS_MPICH
    if (version.starts_with("MPICH")) return make_mpich_library();
#endif
    if (version.empty()) return Status{Code::state, "there is no MPI library in this process"};
    return Status{
        Code::unsupported,
        fmt::format("this process uses '{}', whose mpi.h was not there when the plugin was built; pass a unique "
                    "id by MPI_Bcast instead (npushmemx_get_uniqueid)",
                    version.substr(0, version.find('\n')))};
}

}  // namespace npushmem::mpi
