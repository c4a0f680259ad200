// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/formation_protocol.hpp"

#include <fmt/format.h>

namespace npushmem {

namespace {

void add_slots(TeamMessage& message, const TeamSlotSet& slots) {
    for (const std::uint64_t word : slots) {
        message.add(static_cast<std::uint32_t>(word));
        message.add(static_cast<std::uint32_t>(word >> 32));
    }
}

}  // namespace

TeamSlotSet slots_in(const TeamMessage& message) {
    constexpr std::size_t words = 2 * std::tuple_size_v<TeamSlotSet>;
    TeamSlotSet slots{};
    for (std::size_t i = 0; i < words; ++i) slots[i / 2] |= std::uint64_t{message.words[2 + i]} << (i % 2 * 32);
    return slots;
}

TeamFormationOutcomes::Words FormationRefusal::words() const {
    return {static_cast<std::uint32_t>(reason), details[0], details[1], details[2], details[3]};
}

FormationRefusal FormationRefusal::parse(std::span<const std::uint32_t> words, int reader) {
    FormationRefusal refusal{static_cast<Reason>(words[0]), {words[1], words[2], words[3], words[4]}};
    if (refusal.reason == Reason::surplus && refusal.details[0] == any_reader)
        refusal.details[0] = static_cast<std::uint32_t>(reader);
    return refusal;
}

Status FormationRefusal::status(int leader, int npes) const {
    const auto& [a, b, c, d] = details;
    switch (reason) {
        case Reason::sizes:
            return {Code::mismatch,
                    fmt::format("npes is {} on PE {} and {} on PE {}; all must give the same", a, b, c, d)};
        case Reason::size_range:
            return {Code::range, fmt::format("npes is {} on PE {}, which made the id of the team; the job has {} PEs",
                                             static_cast<std::int32_t>(a), leader, npes)};
        case Reason::twice:
            return {Code::mismatch, fmt::format("PE {} has arrived twice to form a team of {} PEs", a, b)};
        case Reason::indices:
            return {Code::mismatch,
                    fmt::format("PE {} and PE {} both gave pe_idx_in_team {}; each index belongs to one PE", a, b, c)};
        case Reason::index_range:
            return {Code::range, fmt::format("PE {} gave pe_idx_in_team {}; the team has 0 to {}", a,
                                             static_cast<std::int32_t>(b), static_cast<std::int32_t>(c - 1))};
        case Reason::missing:
            return {Code::timeout, fmt::format("only {} of {} PEs arrived to form the team; PE {} made the id and "
                                               "waited for the others",
                                               a, b, leader)};
        case Reason::slots:
            return {Code::memory, "no slot for the team is free on all of its PEs; destroy some teams first"};
        case Reason::surplus:
            return {Code::mismatch,
                    fmt::format("PE {} has arrived to form a team that already has all of its {} PEs", a, b)};
        case Reason::failed:
            if (b > 0)
                return {static_cast<Code>(a),
                        fmt::format("PE {} has died or finalized while PE {}, which made the id of "
                                    "the team, formed it",
                                    b - 1, leader)};
            return {static_cast<Code>(a),
                    fmt::format("PE {}, which made the id of the team, failed to form it ({}) and "
                                "reported the cause",
                                leader, name_of(static_cast<Code>(a)))};
        case Reason::dead:
            return {Code::peer_dead, fmt::format("PE {} has died or finalized after {} of {} PEs arrived to form the "
                                                 "team, which it may belong to",
                                                 a, b, c)};
        case Reason::memory: break;
    }
    return {Code::memory, "a PE has no memory left for the state of the team"};
}

void FormationVote::add_to(TeamMessage& message) const {
    message.add(static_cast<std::uint32_t>(claim));
    message.add(mapped ? 1 : 0);
    add_slots(message, free);
}

FormationVote FormationVote::parse(const TeamMessage& message) {
    return {static_cast<SlotClaim>(message.words[0]), message.words[1] != 0, slots_in(message)};
}

TeamMessage FormationMessages::make(FormationMessage kind) const {
    TeamMessage message;
    message.id = id_;
    message.from = resources_.my_pe;
    message.kind = static_cast<std::uint32_t>(kind);
    return message;
}

TeamMessage FormationMessages::make_hello(const FormationRequest& request, const TeamSlotSet& free) const {
    TeamMessage message = make(FormationMessage::hello);
    message.add(static_cast<std::uint32_t>(request.size));
    message.add(static_cast<std::uint32_t>(request.index));
    add_slots(message, free);
    return message;
}

TeamMessage FormationMessages::make_refusal(const FormationRefusal& refusal) const {
    TeamMessage message = make(FormationMessage::refusal);
    for (const std::uint32_t word : refusal.words()) message.add(word);
    return message;
}

// A failure of the transports may concern any PE. The wait itself detects the loss of an awaited PE.
Result<TeamMessage> FormationMessages::receive(const WaitFor& what, std::optional<std::uint32_t> number,
                                               WaitFailure* failure) {
    std::optional<TeamMessage> message;
    const auto poll = [&] {
        message = mailbox_.take(id_, number);
        if (!message) (void)mailbox_.progress();
        return message.has_value();
    };
    WaitFailure reason;
    const Code code = resources_.waiter.until(poll, what, &reason);
    if (failure != nullptr) *failure = reason;
    if (code != Code::ok) return Status{code, describe(what, reason)};
    return *message;
}

FormationVote ProposedSlot::claim(int slot, const PeRange& members) {
    slot_ = slot;
    claimed_ = slots_.claim(slot);
    const Status prepared = claimed_ ? slots_.prepare(slot) : Status{};
    const SlotClaim claim = !prepared.ok() ? SlotClaim::unavailable
                            : claimed_     ? SlotClaim::claimed
                                           : SlotClaim::contended;
    return {claim, maps_all(resources_, members), slots_.free()};
}

void ProposedSlot::release() {
    if (claimed_) slots_.release(slot_);
    claimed_ = false;
}

}  // namespace npushmem
