// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/mpi/mpi_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "core/base/config.hpp"

namespace npushmem::mpi {

namespace {

// May be called before MPI_Init. Empty without an MPI in the process.
std::string version_of_process() {
    using Ask = int (*)(char*, int*);
    const auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
    constexpr std::size_t longest = 16384;  // every MPI writes less
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
        fmt::format("this process uses '{}', whose mpi.h was missing when the plugin was built; pass a unique "
                    "id by MPI_Bcast instead (npushmemx_get_uniqueid)",
                    version.substr(0, version.find('\n')))};
}

namespace {

constexpr const char* openmpi_file = "libmpi.so.40";
constexpr const char* mpich_file = "libmpich.so.12";

std::string library_for(const Environment& environment) {
    return environment.get("OMPI_COMM_WORLD_SIZE") || !environment.get("PMI_RANK") ? openmpi_file : mpich_file;
}

// Never unloaded: other libraries may use its symbols.
Status load(const std::string& file) {
    if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) != nullptr) return {};
    const char* const why = ::dlerror();
    return {Code::config,
            fmt::format("cannot load the MPI library {}: {}; set NPUSHMEM_BOOTSTRAP_MPI_LIBRARY to its file", file,
                        why != nullptr ? why : "no reason given")};
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
