// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `shmem`: the PEs of an OpenSHMEM program that runs on another library, in the same order.
#include <memory>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/process_singleton.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/shmem/shmem_program.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::shmem {

class ShmemBootstrap {
public:
    // Between the program's shmem_init and shmem_finalize.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

namespace {

constexpr int priority_bonus = 5;  // over mpi: some libraries run on an MPI, which is then found as well

launcher::ProcessSingleton<ShmemProgram>& program_of_process() {
    static launcher::ProcessSingleton<ShmemProgram> program;
    return program;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> ShmemBootstrap::open(const Host& host, const npushmem_bootstrap_params&) {
    return program_of_process().with([] { return ShmemProgram::begin(); },
                                     [&](ShmemProgram& program) { return launcher::join_launched_job(host, program); });
}

int ShmemBootstrap::recognise(const Host&, const npushmem_bootstrap_params&, std::string& why) {
    const auto calls = Calls::of_process();
    if (!calls.ok() || calls.value().running != Calls::Running::yes) return 0;
    why = "an OpenSHMEM library runs in this process";
    return NPUSHMEM_RECOGNISED_LIBRARY + priority_bonus;
}

}  // namespace npushmem::shmem

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::shmem::ShmemBootstrap, "shmem",
                                      "a running OpenSHMEM program of another library",
                                      npushmem::rendezvous::launched_config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::launched_config_rows().size()));
