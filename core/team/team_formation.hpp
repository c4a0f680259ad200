// SPDX-License-Identifier: BSD-3-Clause
// Forms teams of PEs that share only an id; the protocol is in formation_protocol.hpp.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "core/team/formation_protocol.hpp"
#include "core/team/team_mailbox.hpp"
#include "core/team/team_split.hpp"

namespace npushmem {

// This PE's ids of teams, and its part in the formation of teams. Any thread.
class TeamFormation {
public:
    // The size of its memory in every slice.
    static constexpr std::uint64_t bytes = TeamMailbox::bytes + TeamFormationOutcomes::bytes;

    // `memory` is the offset of zeroed memory in every slice. All references outlive this.
    TeamFormation(const TeamResources& resources, TeamSlots& slots, std::uint64_t memory)
        : resources_(resources),
          slots_(slots),
          mailbox_(resources, memory),
          outcomes_(resources, memory + TeamMailbox::bytes) {}

    // Returns a new id; it serves for one team.
    [[nodiscard]] std::uint64_t make_id();
    // Collective over the future members, each with its own index. Fails if this PE has used the id before; then the
    // formation in progress fails too.
    Result<AgreedTeam> form(const FormationRequest& request);

private:
    Status check_id(std::uint64_t id) const;
    bool begin_use(std::uint64_t id);

    const TeamResources& resources_;
    TeamSlots& slots_;
    TeamMailbox mailbox_;
    TeamFormationOutcomes outcomes_;
    std::mutex lock_;
    std::uint32_t ids_ = 0;             // number of ids made; under lock_
    std::set<std::uint64_t> open_ids_;  // made here and not used yet; under lock_
};

}  // namespace npushmem
