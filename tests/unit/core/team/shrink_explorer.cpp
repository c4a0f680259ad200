// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/core/team/shrink_explorer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace npushmem {

using Phase = ShrinkRecord::Phase;

// The slots of one member during one step.
class ShrinkExplorer::Slots final : public ShrinkSlots {
public:
    Slots(const Config& config, int member, TeamSlotSet& claimed)
        : config_(config), member_(member), claimed_(claimed) {}

    TeamSlotSet free() override { return {((std::uint64_t{1} << config_.slots) - 1) & ~claimed_[0]}; }
    Claim claim(int slot, const MemberSet& /*failed*/) override {
        claimed_[0] |= std::uint64_t{1} << slot;
        return config_.claim(member_, slot);
    }

private:
    const Config& config_;
    int member_;
    TeamSlotSet& claimed_;
};

void ShrinkExplorer::Member::mark_records() {
    for (ShrinkRecord& each : published) each.has_left = true;
}

ShrinkExplorer::Result ShrinkExplorer::run() {
    State start;
    for (int member = 0; member < config_.members; ++member) start.members.emplace_back(config_.members, member);
    add(std::move(start));
    while (!open_.empty() && result_.fault.empty()) {
        const State state = std::move(open_.back());
        open_.pop_back();
        check(state);
        add_successors(state);
    }
    result_.states = known_.size();
    return result_;
}

void ShrinkExplorer::add(State next) {
    std::string reached = key(next);
    has_moved_ = has_moved_ || reached != from_;
    if (known_.insert(std::move(reached)).second) open_.push_back(std::move(next));
}

void ShrinkExplorer::add_successors(const State& state) {
    from_ = key(state);
    has_moved_ = false;
    for (std::size_t member = 0; member < state.members.size(); ++member)
        if (state.members[member].takes_part()) add_steps_of(state, member);
    if (!has_moved_) check_end(state);
    if (std::ranges::count_if(state.members, &Member::crashed) < config_.max_crashes) add_crashes(state);
}

void ShrinkExplorer::add_crashes(const State& state) {
    for (std::size_t member = 0; member < state.members.size(); ++member) {
        if (!state.members[member].takes_part()) continue;
        State next = state;
        next.members[member].crashed = true;
        for (std::size_t i = 0; i < state.members.size(); ++i)
            if (!state.members[i].crashed && !state.members[i].has_entered())
                next.members[member].absent_at_crash |= 1U << i;
        add(std::move(next));
    }
}

// Enters, or changes the own record. False: nothing changes.
bool ShrinkExplorer::publish(Member& own, int member) const {
    Slots slots(config_, member, own.claimed);
    if (!own.agreement.advance(slots)) return false;
    own.record() = own.agreement.record();
    return true;
}

void ShrinkExplorer::add_steps_of(const State& state, std::size_t member) {
    State next = state;
    if (publish(next.members[member], static_cast<int>(member))) add(std::move(next));
    if (!state.members[member].has_entered()) return;
    for (int other = 0; other < config_.members; ++other)
        if (state.members[member].agreement.awaits(other)) add_readings(state, member, other);
    add_returns(state, member);
}

// The member's call fails, or has returned and it continues.
void ShrinkExplorer::add_returns(const State& state, std::size_t member) {
    const Member& own = state.members[member];
    State next = state;
    Member& after = next.members[member];
    if (own.agreement.is_excluded() || (!own.agreement.has_decided() && state.failures < config_.max_failures)) {
        next.failures += own.agreement.is_excluded() ? 0 : 1;
        after.failed = true;
        after.mark_records();
        add(std::move(next));
    } else if (own.record().phase == Phase::decided && own.call < config_.calls) {
        after.agreement =
            ShrinkAgreement(config_.members, static_cast<int>(member), static_cast<std::uint64_t>(++after.call));
        after.claimed = {};
        add(std::move(next));
    } else if (own.record().phase == Phase::decided && config_.leaves) {
        after.mark_records();
        add(std::move(next));
    }
}

void ShrinkExplorer::add_readings(const State& state, std::size_t reader, int other) {
    const Member& own = state.members[reader];
    const Member& read = state.members[static_cast<std::size_t>(other)];
    State next = state;
    next.members[reader].agreement.learn(other, seen(read.published[static_cast<std::size_t>(own.call % 2)], own));
    add(std::move(next));
    const bool is_suspected = (own.suspected >> other & 1U) != 0;
    if (!read.crashed && !is_suspected && state.errors == config_.max_errors) return;
    State found = state;
    found.members[reader].agreement.learn_failed(other);
    if (!read.crashed && !is_suspected) {
        ++found.errors;
        found.members[reader].suspected |= 1U << other;
    }
    add(std::move(found));
}

ShrinkRecord ShrinkExplorer::seen(const ShrinkRecord& record, const Member& reader) const {
    ShrinkRecord as_read = record;
    if (config_.decisions_are_lost && record.phase == Phase::decided) as_read.phase = Phase::proposed;
    if (config_.decides_early && record.phase == Phase::proposed) as_read.phase = Phase::claimed;
    if (!config_.sets_are_ignored) return as_read;
    as_read.failed = reader.agreement.record().failed;
    if (record.phase == Phase::decided) as_read.phase = Phase::claimed;
    return as_read;
}

void ShrinkExplorer::check(const State& state) {
    for (std::size_t member = 0; member < state.members.size(); ++member) {
        const Member& one = state.members[member];
        if (!one.takes_part() || !one.has_entered() || config_.may_exclude) continue;
        if (one.agreement.is_excluded() && state.failures == 0)
            result_.fault = fmt::format("member {} is excluded and lives", member);
        if (one.agreement.has_decided()) check_decision(state, member);
    }
}

// All living members that have decided agree, exclude no living one, and include none that died before they called.
void ShrinkExplorer::check_decision(const State& state, std::size_t member) {
    const Member& own = state.members[member];
    const ShrinkRecord& decision = own.agreement.record();
    for (int other = 0; other < config_.members; ++other) {
        const Member& one = state.members[static_cast<std::size_t>(other)];
        if (one.takes_part() && decision.failed.has(other))
            result_.fault = fmt::format("member {} excludes {}, which lives", member, other);
        if (config_.calls == 1 && one.crashed && !decision.failed.has(other) &&
            (one.absent_at_crash >> member & 1U) != 0)
            result_.fault = fmt::format("member {} includes {}, which was dead before the call", member, other);
        const ShrinkRecord& theirs =
            one.call == own.call ? one.agreement.record() : one.published[static_cast<std::size_t>(own.call % 2)];
        if (!one.takes_part() || theirs.call != decision.call || theirs.phase != Phase::decided) continue;
        if (theirs.failed != decision.failed || theirs.slot != decision.slot || theirs.claim != decision.claim ||
            theirs.mapped != decision.mapped)
            result_.fault = fmt::format("members {} and {} live and decide differently", member, other);
    }
    if (decision.slot >= 0 && (own.claimed[0] >> decision.slot & 1U) == 0)
        result_.fault = fmt::format("member {} decides for slot {}, which it has not claimed", member, decision.slot);
}

void ShrinkExplorer::check_end(const State& state) {
    for (std::size_t member = 0; member < state.members.size(); ++member) {
        const Member& one = state.members[member];
        if (one.takes_part() && (one.record().phase != Phase::decided || one.call < config_.calls))
            result_.fault = fmt::format("member {} waits for ever", member);
    }
    ++result_.ends;
}

namespace {

std::uint64_t renumbered(std::uint64_t set, const std::vector<int>& order) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < order.size(); ++i) out |= (set >> order[i] & 1U) << i;
    return out;
}

void append(std::string& key, std::uint64_t small) { key.push_back(static_cast<char>(small)); }

}  // namespace

// The smallest key of all numberings.
std::string ShrinkExplorer::key(const State& state) const {
    std::vector<int> order(state.members.size());
    std::iota(order.begin(), order.end(), 0);
    std::string smallest = key(state, order);
    while (!config_.numbered && std::ranges::next_permutation(order).found)
        smallest = std::min(smallest, key(state, order));
    return smallest;
}

// Everything that the future depends on: of the dead and the failed only their records.
std::string ShrinkExplorer::key(const State& state, const std::vector<int>& order) const {
    std::string key;
    const auto add_record = [&](const ShrinkRecord& record) {
        append(key, static_cast<std::uint64_t>(record.phase) | static_cast<std::uint64_t>(record.claim) << 3 |
                        std::uint64_t{record.mapped} << 5 | std::uint64_t{record.has_left} << 6);
        append(key, renumbered(record.failed.words()[0], order));
        append(key, static_cast<std::uint64_t>(record.slot + 1));
        append(key, record.free[0]);
        append(key, record.call);
    };
    append(key, static_cast<std::uint64_t>(state.failures) << 4 | static_cast<std::uint64_t>(state.errors));
    for (const int member : order) {
        const Member& one = state.members[static_cast<std::size_t>(member)];
        const ShrinkAgreement& local = one.agreement;
        append(key, std::uint64_t{one.crashed} | std::uint64_t{one.failed} << 1 |
                        std::uint64_t{local.is_excluded_} << 2 | static_cast<std::uint64_t>(one.call) << 3);
        append(key, renumbered(one.absent_at_crash, order));
        add_record(one.published[1]);
        if (config_.calls > 1) add_record(one.published[0]);
        if (!one.takes_part()) continue;
        append(key, renumbered(one.suspected, order));
        if (one.has_entered() && one.record().phase == Phase::decided) continue;
        add_record(local.record_);
        append(key, std::uint64_t{local.must_propose_} | std::uint64_t{local.must_publish_} << 1 |
                        std::uint64_t{local.all_mapped_} << 2 | static_cast<std::uint64_t>(local.worst_) << 3);
        append(key, renumbered(local.agreed_.words()[0], order));
        append(key, local.common_[0]);
        append(key, one.claimed[0]);
    }
    return key;
}

}  // namespace npushmem
