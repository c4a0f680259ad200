// The claims of one job on the NICs of this host: found room for among those of other jobs, and given back at the end.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/host_table.hpp"
#include "core/runtime/nic_choice.hpp"

namespace npushmem {

// Where jobs of this host tell each other what they use.
HostTablePlace nic_table_place();

// The claims of all jobs on the host, of every user and machine; for reports.
std::vector<topology::NicClaim> all_nic_claims();

// What a job of these PEs would be given now; claims nothing. The second form looks at this machine, or at the one that
// NPUSHMEM_TOPO_FILE names, and returns the text for people.
Result<NicChoices> preview_nics(const Settings& settings, const topology::Machine& machine,
                                const std::vector<int>& pes);
Result<std::string> preview_nics(const Settings& settings, const std::vector<int>& pes, std::size_t max_described);

// Gives the claims back when it is destroyed, in the process that made them: a copy in a forked child gives back
// nothing. A process that dies gives its own back by dying.
class NicClaims {
public:
    NicClaims() = default;
    NicClaims(NicClaims&& other) noexcept;
    NicClaims& operator=(NicClaims&& other) noexcept;
    ~NicClaims();

    struct Outcome;
    // Chooses for `wanted` beside the claims of others, and claims what it chose, while no other job can do the same.
    // `processes`: of the PEs that `wanted` lists. Without NPUSHMEM_NIC_ARBITRATION, and where the table cannot be
    // used, other jobs are not seen: the outcome's warning says so. Fails as choose_nics does.
    static Result<Outcome> acquire(const Settings& settings, const topology::Machine& machine, const NicRequest& wanted,
                                   std::span<const ProcessId> processes, const HostTablePlace& place);

private:
    NicClaims(HostTablePlace place, std::uint64_t job);

    HostTablePlace place_;
    std::uint64_t job_ = 0;  // 0: nothing is claimed
    pid_t owner_ = 0;
};

struct NicClaims::Outcome {
    topology::Assignment assignment;
    NicClaims claims;
    std::string warning;  // empty: none
};

}  // namespace npushmem
