// The unique id of a job, and what serves it: the uid bootstrap's rendezvous lives in the launcher while the job runs.
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

    // A PE has ended, as `how` says, so that no other may wait for it in its start.
    virtual void pe_ended(int pe, int npes, const std::string& how) = 0;

    // Loads the plugin and starts its service. `environment` is that of the PEs, so that both sides use one
    // configuration.
    static Result<std::unique_ptr<Rendezvous>> open(const EnvironmentBlock& environment);
};

}  // namespace npushmem::run
