#include "bootstrap/mpi/started_mpi.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/config.hpp"

namespace npushmem::mpi {
namespace {

constexpr const char* openmpi_file = "libmpi.so.40";
constexpr const char* mpich_file = "libmpich.so.12";

std::string library_for(const Environment& environment) {
    return environment.get("OMPI_COMM_WORLD_SIZE") || !environment.get("PMI_RANK") ? openmpi_file : mpich_file;
}

// For good: what other libraries find in it must stay.
Status load(const std::string& file) {
    if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) != nullptr) return {};
    const char* const why = ::dlerror();
    return {Code::config, fmt::format("cannot load the MPI library {}: {}; NPUSHMEM_BOOTSTRAP_MPI_LIBRARY names it",
                                      file, why != nullptr ? why : "no reason given")};
}

}  // namespace

Result<StartedMpi> StartedMpi::begin(const std::string& file) {
    if (::dlsym(RTLD_DEFAULT, "MPI_Init") == nullptr) {
        Status loaded = load(file.empty() ? library_for(ProcessEnvironment()) : file);
        if (!loaded.ok()) return loaded;
    }
    auto library = MpiLibrary::of_process();
    if (!library.ok()) return library.status();
    if (Status begun = library.value()->init(); !begun.ok()) return begun;
    return StartedMpi(std::move(library).value());
}

}  // namespace npushmem::mpi
