// SPDX-License-Identifier: BSD-3-Clause
// Runs a job: sets the process-wide state that a launcher needs, and forks the supervisor.
#pragma once

#include <memory>
#include <string>

#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/options.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

// The unique id of a job, and its service: the uid bootstrap's rendezvous runs in the launcher as long as the job.
class Rendezvous {
public:
    Rendezvous() = default;
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;
    virtual ~Rendezvous() = default;

    // 256 hexadecimal digits, for NPUSHMEM_UNIQUEID.
    [[nodiscard]] virtual std::string unique_id() const = 0;

    // A PE has ended, so no other PE may wait for it to join. `how` describes the end.
    virtual void pe_ended(int pe, int npes, const std::string& how) = 0;

    // Starts the service of the plugin `uid` that is part of this program; with an NPUSHMEM_PLUGIN_PATH, of the
    // plugin's file, because the PEs may find another there. `environment` is the environment of the PEs, so that both
    // sides use the same configuration.
    static Result<std::unique_ptr<Rendezvous>> open(const EnvironmentBlock& environment);
};

// Call it while the process has one thread. Blocks the signals that are forwarded, raises the limit of open files, and
// makes the process a subreaper, so that the process can do nothing but this job afterwards. Returns the exit status;
// it does not return in the supervisor's process.
int run_job(const Options& options, JobPlan plan);

}  // namespace npushmem::run
