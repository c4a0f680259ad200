// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_formation.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/team/formation_leader.hpp"

namespace npushmem {

namespace {

// A member that is not the leader. Forms one team, for one thread.
class FormationMember {
public:
    FormationMember(const FormationRequest& request, FormationMessages& messages, ProposedSlot& slot,
                    const TeamFormationOutcomes& outcomes)
        : request_(request), messages_(messages), slot_(slot), outcomes_(outcomes) {}

    // Follows the leader until all have agreed on a slot, which this PE holds then.
    Status run(AgreedTeam& agreed);
    // Sends the leader a hello. Fails if the leader has closed the id.
    Status send_hello();

private:
    [[nodiscard]] Status check_closed() const;
    Status handle(const TeamMessage& message, AgreedTeam& agreed, bool& finished);
    Status vote(int slot, AgreedTeam& agreed);

    FormationRequest request_;
    FormationMessages& messages_;
    ProposedSlot& slot_;
    const TeamFormationOutcomes& outcomes_;
    std::vector<int> pes_;  // by index, as far as the leader has sent them
};

Status FormationMember::run(AgreedTeam& agreed) {
    if (Status sent = send_hello(); !sent.ok()) return sent;
    const WaitFor what{.what = "the PE that made the id of a new team",
                       .needs = PeRange::one(messages_.leader()),
                       .timeout = messages_.resources().timeout};
    std::uint32_t number = 0;
    for (bool finished = false; !finished; ++number) {
        const auto message = messages_.receive(what, number);
        if (!message.ok()) return message.status();
        if (Status handled = handle(message.value(), agreed, finished); !handled.ok()) return handled;
    }
    return {};
}

// Checks the table too: the leader empties its mailbox while it leads, but not necessarily afterwards.
Status FormationMember::send_hello() {
    Status closed;
    const auto is_closed = [&] { return !(closed = check_closed()).ok(); };
    const TeamMessage hello = messages_.make_hello(request_, slot_.free());
    Status sent = messages_.send(messages_.leader(), hello, is_closed);
    if (sent.ok() && closed.ok()) closed = check_closed();
    return sent.ok() ? closed : sent;
}

// Returns the failure if the leader has closed the id.
Status FormationMember::check_closed() const {
    const auto outcome = outcomes_.find(messages_.leader(), number_of_team(request_.id));
    if (!outcome.ok() || !outcome.value()) return outcome.status();
    const TeamResources& resources = messages_.resources();
    return FormationRefusal::parse(*outcome.value(), resources.my_pe).status(messages_.leader(), resources.npes);
}

Status FormationMember::handle(const TeamMessage& message, AgreedTeam& agreed, bool& finished) {
    const auto& words = message.words;
    const TeamResources& resources = messages_.resources();
    switch (static_cast<FormationMessage>(message.kind)) {
        case FormationMessage::roster:
            for (std::uint32_t i = 0; i < message.count; ++i) pes_.push_back(static_cast<int>(words[i]));
            return {};
        case FormationMessage::proposal: return vote(static_cast<int>(words[0]), agreed);
        case FormationMessage::verdict:
            finished = static_cast<SlotClaim>(words[0]) == SlotClaim::claimed;
            agreed.mapped = words[1] != 0;
            if (!finished) slot_.release();
            return {};
        case FormationMessage::refusal:
            return FormationRefusal::parse(words, resources.my_pe).status(messages_.leader(), resources.npes);
        default: break;
    }
    return {Code::protocol,
            fmt::format("PE {} sent a message of kind {} about a new team", message.from, message.kind)};
}

Status FormationMember::vote(int slot, AgreedTeam& agreed) {
    agreed.members = Members::listed(pes_);
    TeamMessage reply = messages_.make(FormationMessage::vote);
    slot_.claim(slot, agreed.members.range()).add_to(reply);
    return messages_.send(messages_.leader(), reply);
}

}  // namespace

std::uint64_t TeamFormation::make_id() {
    const std::lock_guard guard(lock_);
    const std::uint64_t id = make_team_id(resources_.my_pe, ++ids_);
    open_ids_.insert(id);
    outcomes_.publish_made(ids_);
    mailbox_.expect(id);  // other PEs may arrive before this one
    return id;
}

// An id serves for one team.
Status TeamFormation::check_id(std::uint64_t id) const {
    const int leader = leader_of_team(id);
    if (leader >= 0 && leader < resources_.npes) {
        const auto made = outcomes_.was_made(leader, number_of_team(id));
        if (!made.ok()) return made.status();
        if (made.value()) return {};
    }
    return {Code::argument, fmt::format("no PE of this job has made the id {:#x}", id)};
}

// False: this PE has used the id before.
bool TeamFormation::begin_use(std::uint64_t id) {
    if (leader_of_team(id) != resources_.my_pe) return mailbox_.expect(id);
    const std::lock_guard guard(lock_);
    return open_ids_.erase(id) != 0;
}

Result<AgreedTeam> TeamFormation::form(const FormationRequest& request) {
    if (Status checked = check_id(request.id); !checked.ok()) return checked;
    FormationMessages messages(resources_, mailbox_, request.id);
    ProposedSlot slot(resources_, slots_);
    FormationMember member(request, messages, slot, outcomes_);
    const bool leads = messages.leader() == resources_.my_pe;
    if (!begin_use(request.id)) {
        // A second hello from a PE reports the reuse to the leader. The failure is the same either way.
        if (leads)
            mailbox_.deliver_locally(messages.make_hello(request, slot.free()));
        else
            (void)member.send_hello();
        return Status{Code::argument,
                      fmt::format("PE {} has used the id {:#x} before, perhaps in another thread; an id serves for one "
                                  "team, formed or rejected",
                                  resources_.my_pe, request.id)};
    }
    AgreedTeam agreed;
    Status done = leads ? FormationLeader(request, messages, slot, outcomes_).run(agreed) : member.run(agreed);
    mailbox_.forget(request.id);
    if (!done.ok()) {
        slot.release();
        return done;
    }
    agreed.slot = slot.slot();
    return agreed;
}

}  // namespace npushmem
