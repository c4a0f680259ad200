// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_shrink.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem {

namespace {

// This PE's slots in one call. Slots of sets that the members have given up are released at its end, unless kept.
class ClaimedSlots final : public ShrinkSlots {
public:
    ClaimedSlots(const TeamResources& resources, TeamSlots& slots, const Team& parent, bool has_output)
        : resources_(resources), slots_(slots), parent_(parent), has_output_(has_output) {}
    ClaimedSlots(const ClaimedSlots&) = delete;
    ClaimedSlots& operator=(const ClaimedSlots&) = delete;
    ~ClaimedSlots() override {
        for (const int slot : claimed_) slots_.release(slot);
    }

    TeamSlotSet free() override { return has_output_ ? slots_.free() : TeamSlotSet{}; }
    Claim claim(int slot, const MemberSet& failed) override;
    void keep(int slot) { std::erase(claimed_, slot); }
    void keep_all() { claimed_.clear(); }

private:
    const TeamResources& resources_;
    TeamSlots& slots_;
    const Team& parent_;
    bool has_output_;
    std::vector<int> claimed_;
};

ShrinkSlots::Claim ClaimedSlots::claim(int slot, const MemberSet& failed) {
    bool mapped = true;
    for (int member = 0; member < parent_.size() && mapped; ++member)
        mapped = failed.has(member) || slice_of(resources_, parent_.members().at(member)) != nullptr;
    if (!slots_.claim(slot)) return {SlotClaim::contended, mapped};
    claimed_.push_back(slot);
    return {slots_.prepare(slot).ok() ? SlotClaim::claimed : SlotClaim::unavailable, mapped};
}

// The members whose records a wait still needs, as a wait takes them.
class AwaitedMembers {
public:
    explicit AwaitedMembers(const Team& team) : team_(team) { pes_.reserve(static_cast<std::size_t>(team.size())); }

    template <class Awaits>
    void update(Awaits&& awaits) {
        pes_.clear();
        for (int member = 0; member < team_.size(); ++member)
            if (awaits(member)) pes_.push_back(team_.members().at(member));
        range_ = {.count = static_cast<int>(pes_.size()), .table = pes_.data()};
    }
    [[nodiscard]] const PeRange& range() const { return range_; }
    // Returns the awaited member that is this PE; -1: none is.
    [[nodiscard]] int member_of(int pe) const {
        return std::ranges::find(pes_, pe) != pes_.end() ? team_.members().index_of(pe) : -1;
    }

private:
    const Team& team_;
    std::vector<int> pes_;
    PeRange range_;
};

// Waits until `poll` returns true. It updates `awaited`; `learn_dead` receives each of these that is found dead.
template <class Poll, class LearnDead>
Status wait_among_living(const TeamResources& resources, Team& team, const char* what, AwaitedMembers& awaited,
                         Poll&& poll, LearnDead&& learn_dead) {
    for (int last_dead = -1;;) {
        WaitFor wait{.what = what, .timeout = resources.timeout, .is_stepwise = true};
        const auto ready = [&] {
            const bool done = poll();
            wait.needs = awaited.range();
            return done;
        };
        WaitFailure failure;
        const Code code = team.calls().waiter().until(ready, wait, &failure);
        if (code == Code::ok) return {};
        const int member = code == Code::peer_dead ? awaited.member_of(failure.dead_pe) : -1;
        // The last poll of the wait may have learned of the death by itself, but of one death only once.
        const bool is_known = member < 0 && code == Code::peer_dead && failure.dead_pe != last_dead;
        if (member < 0 && !is_known) return {code, describe(wait, failure)};
        if (member >= 0) learn_dead(member);
        last_dead = failure.dead_pe;
    }
}

}  // namespace

Status TeamShrink::agree(ShrinkAgreement& agreement, ShrinkSlots& slots) {
    ShrinkRecords records(resources_, parent_);
    AwaitedMembers awaited(parent_);
    Status failed;
    const auto read = [&](int member) {
        const auto record = records.read(member, agreement.record().call);
        if (!record.ok() && is_lost(record.status())) {
            if (resources_.report_lost) resources_.report_lost(parent_.members().at(member));
            return agreement.learn_failed(member);
        }
        if (!record.ok()) failed = record.status();
        if (record.ok() && record.value()) agreement.learn(member, *record.value());
    };
    const auto poll = [&] {
        for (int member = 0; member < parent_.size() && failed.ok(); ++member)
            if (agreement.awaits(member)) read(member);
        while (agreement.advance(slots)) records.publish(agreement.record());
        awaited.update([&](int member) { return agreement.awaits(member); });
        return agreement.has_decided() || agreement.is_excluded() || !failed.ok();
    };
    while (agreement.advance(slots)) records.publish(agreement.record());
    Status waited = wait_among_living(resources_, parent_, "the records of a team's shrink", awaited, poll,
                                      [&](int member) { agreement.learn_failed(member); });
    return failed.ok() ? waited : failed;
}

Status TeamShrink::run(AgreedTeam& agreed, bool& granted) {
    if (parent_.shrink_failed)
        return {Code::protocol, fmt::format("an earlier shrink of the team {} failed on this PE, so its members no "
                                            "longer agree",
                                            parent_.name())};
    ClaimedSlots slots(resources_, slots_, parent_, has_output_);
    ShrinkAgreement agreement(parent_.size(), parent_.index(), parent_.shrinks + 1);
    parent_.shrink_failed = true;
    Status done = agree(agreement, slots);
    // The others must not wait for this PE.
    if (!agreement.has_decided()) ShrinkRecords(resources_, parent_).publish_end();
    // Others may have decided for a slot and signal there: those that count this PE in, and one that has died since,
    // whose signals the network may still hold.
    const bool has_failed_member = agreement.record().failed != MemberSet(parent_.size());
    if (!agreement.has_decided() || (has_failed_member && !parent_.all_mapped())) slots.keep_all();
    if (!done.ok()) return done;
    if (agreement.is_excluded())
        return {Code::peer_dead, fmt::format("the other members of the team {} have counted PE {}, this one, among the "
                                             "dead",
                                             parent_.name(), resources_.my_pe)};
    parent_.shrink_failed = false;
    ++parent_.shrinks;
    Status result = result_of(agreement.record(), agreed, granted);
    if (result.ok() && granted) slots.keep(agreed.slot);
    return result;
}

Status TeamShrink::result_of(const ShrinkRecord& decision, AgreedTeam& agreed, bool& granted) const {
    if (decision.slot < 0)
        return {Code::memory, fmt::format("no slot for a team is free on all living PEs of the team {}; destroy some "
                                          "teams first, and pass no NULL for the handle of the new one",
                                          parent_.name())};
    if (decision.claim == SlotClaim::unavailable)
        return {Code::memory, "a PE has no memory left for the state of the team"};
    granted = decision.claim == SlotClaim::claimed;
    std::vector<int> living;
    for (int member = 0; member < parent_.size(); ++member)
        if (!decision.failed.has(member)) living.push_back(parent_.members().at(member));
    agreed = {decision.slot, Members::listed(std::move(living)), decision.mapped};
    return {};
}

Status wait_for_ends(const TeamResources& resources, Team& team) {
    const ShrinkRecords records(resources, team);
    AwaitedMembers awaited(team);
    MemberSet ended(team.size());
    ended.add(team.index());
    const auto has_ended = [&](int member) {
        const auto record = records.read(member, 0);
        return !record.ok() || (record.value() && record.value()->has_left);
    };
    const auto poll = [&] {
        for (int member = 0; member < team.size(); ++member)
            if (!ended.has(member) && has_ended(member)) ended.add(member);
        awaited.update([&](int member) { return !ended.has(member); });
        return awaited.range().count == 0;
    };
    return wait_among_living(resources, team, "the end of the job", awaited, poll,
                             [&](int member) { ended.add(member); });
}

}  // namespace npushmem
