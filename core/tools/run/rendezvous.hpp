// The unique id of a job, and its service: the uid bootstrap's rendezvous runs in the launcher as long as the job.
#pragma once

#include <memory>
#include <string>

#include "core/tools/run/job_preparation.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

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

    // Loads the plugin and starts its service. `environment` is the environment of the PEs, so that both
    // sides use the same configuration.
    static Result<std::unique_ptr<Rendezvous>> open(const EnvironmentBlock& environment);
};

}  // namespace npushmem::run
