// SPDX-License-Identifier: BSD-3-Clause
// The leader of a team that forms from an id; the protocol is in formation_protocol.hpp.
#pragma once

#include <optional>
#include <vector>

#include "core/team/formation_protocol.hpp"

namespace npushmem {

// Forms one team, for one thread.
class FormationLeader {
public:
    // All references outlive this.
    FormationLeader(const FormationRequest& request, FormationMessages& messages, ProposedSlot& slot,
                    TeamFormationOutcomes& outcomes)
        : request_(request), messages_(messages), slot_(slot), outcomes_(outcomes) {}

    // Collects the members and agrees with them on a slot, which it holds then. Closes the id in any case.
    Status run(AgreedTeam& agreed);

private:
    using Reason = FormationRefusal::Reason;

    struct Arrival {
        int pe;
        int size;
        int index;
        TeamSlotSet free;
    };

    Status form(AgreedTeam& agreed);
    Status receive_hellos();
    [[nodiscard]] std::optional<FormationRefusal> find_conflict() const;
    [[nodiscard]] std::vector<int> pes_by_index() const;
    [[nodiscard]] bool has_arrived(int pe) const;
    Status send_to_all(TeamMessage message);
    Status send_roster(const std::vector<int>& pes);
    Status choose_slot(AgreedTeam& agreed);
    Status receive_votes(const PeRange& members);
    Status refuse(const FormationRefusal& refusal);
    Status refuse_surplus(int pe);
    void close(const Status& done);

    FormationRequest request_;
    FormationMessages& messages_;
    ProposedSlot& slot_;
    TeamFormationOutcomes& outcomes_;
    std::optional<FormationRefusal> refusal_;
    int lost_ = -1;                     // the first PE that a message found dead, or a wait
    std::uint32_t sent_ = 0;            // messages to all members
    std::vector<Arrival> arrivals_;     // itself first
    std::vector<FormationVote> votes_;  // itself first
};

}  // namespace npushmem
