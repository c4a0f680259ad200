// SPDX-License-Identifier: BSD-3-Clause
// Shrinks a team to its living members; the agreement is in shrink_agreement.hpp. Waits among members of which some may
// be dead.
#pragma once

#include <functional>
#include <vector>

#include "core/team/shrink_records.hpp"

namespace npushmem {

// One call of this PE, for one thread.
class TeamShrink {
public:
    // All references outlive this. `has_output`: this PE has passed memory for the new team's name.
    TeamShrink(const TeamResources& resources, TeamSlots& slots, Team& parent, bool has_output)
        : resources_(resources), slots_(slots), parent_(parent), has_output_(has_output) {}

    // Agrees with the living members on the new team. *granted: all of them have claimed its slot. Otherwise another
    // thread of a PE was faster; try again.
    Status run(AgreedTeam& agreed, bool& granted);

private:
    Status agree(ShrinkAgreement& agreement, ShrinkSlots& slots);
    [[nodiscard]] Status result_of(const ShrinkRecord& decision, AgreedTeam& agreed, bool& granted) const;

    const TeamResources& resources_;
    TeamSlots& slots_;
    Team& parent_;
    bool has_output_;
};

// Waits until each other member has published its end (ShrinkRecords) or is dead.
Status wait_for_ends(const TeamResources& resources, Team& team);

}  // namespace npushmem
