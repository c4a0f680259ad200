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

ShrinkExplorer::Result ShrinkExplorer::run() {
    State start;
    for (int member = 0; member < config_.members; ++member) start.emplace_back(config_.members, member);
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
    for (int member = 0; member < config_.members; ++member)
        if (!state[static_cast<std::size_t>(member)].crashed) add_steps_of(state, member);
    if (!has_moved_) check_end(state);
    const auto crashes = std::ranges::count_if(state, &Member::crashed);
    if (crashes == config_.max_crashes) return;
    for (std::size_t member = 0; member < state.size(); ++member) {
        if (state[member].crashed) continue;
        State next = state;
        next[member].crashed = true;
        for (std::size_t i = 0; i < state.size(); ++i)
            if (!state[i].crashed && !state[i].entered) next[member].absent_at_crash |= 1U << i;
        add(std::move(next));
    }
}

// Enters, or changes the own record. False: nothing changes.
bool ShrinkExplorer::publish(State& state, int member) const {
    Member& own = state[static_cast<std::size_t>(member)];
    Slots slots(config_, member, own.claimed);
    if (!own.agreement.advance(slots)) return false;
    own.entered = true;
    own.published = own.agreement.record();
    return true;
}

void ShrinkExplorer::add_steps_of(const State& state, int member) {
    const Member& own = state[static_cast<std::size_t>(member)];
    State next = state;
    if (publish(next, member)) add(std::move(next));
    if (!own.entered) return;
    for (int other = 0; other < config_.members; ++other)
        if (own.agreement.awaits(other)) add_reading(state, member, other);
    if (config_.leaves && own.published.phase == Phase::decided && !own.published.has_left) {
        State left = state;
        left[static_cast<std::size_t>(member)].published.has_left = true;
        add(std::move(left));
    }
}

void ShrinkExplorer::add_reading(const State& state, int reader, int other) {
    const Member& read = state[static_cast<std::size_t>(other)];
    const auto at = static_cast<std::size_t>(reader);
    if (read.entered) {
        State next = state;
        next[at].agreement.learn(other, seen(read.published));
        add(std::move(next));
    }
    if (read.crashed || config_.detector_errs) {
        State next = state;
        next[at].agreement.learn_failed(other);
        add(std::move(next));
    }
}

ShrinkRecord ShrinkExplorer::seen(const ShrinkRecord& record) const {
    ShrinkRecord as_read = record;
    if (config_.decisions_are_lost && record.phase == Phase::decided) as_read.phase = Phase::proposed;
    if (config_.decides_early && record.phase == Phase::proposed) as_read.phase = Phase::claimed;
    return as_read;
}

void ShrinkExplorer::check(const State& state) {
    for (int member = 0; member < config_.members; ++member) {
        const Member& one = state[static_cast<std::size_t>(member)];
        if (one.crashed || !one.entered) continue;
        if (one.agreement.is_excluded()) result_.fault = fmt::format("member {} is excluded and lives", member);
        if (one.agreement.has_decided()) check_decision(state, member);
    }
}

// All living members that have decided agree, exclude no living one, and include none that died before they called.
void ShrinkExplorer::check_decision(const State& state, int member) {
    const auto at = static_cast<std::size_t>(member);
    const ShrinkRecord& decision = state[at].agreement.record();
    for (int other = 0; other < config_.members; ++other) {
        const Member& one = state[static_cast<std::size_t>(other)];
        if (!one.crashed && decision.failed.has(other))
            result_.fault = fmt::format("member {} excludes {}, which lives", member, other);
        if (one.crashed && !decision.failed.has(other) && (one.absent_at_crash >> at & 1U) != 0)
            result_.fault = fmt::format("member {} includes {}, which was dead before the call", member, other);
        if (one.crashed || !one.agreement.has_decided()) continue;
        const ShrinkRecord& theirs = one.agreement.record();
        if (theirs.failed != decision.failed || theirs.slot != decision.slot || theirs.claim != decision.claim ||
            theirs.mapped != decision.mapped)
            result_.fault = fmt::format("members {} and {} live and decide differently", member, other);
    }
    if (decision.slot >= 0 && (state[at].claimed[0] >> decision.slot & 1U) == 0)
        result_.fault = fmt::format("member {} decides for slot {}, which it has not claimed", member, decision.slot);
}

void ShrinkExplorer::check_end(const State& state) {
    for (int member = 0; member < config_.members; ++member) {
        const Member& one = state[static_cast<std::size_t>(member)];
        if (!one.crashed && one.published.phase != Phase::decided)
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
    std::vector<int> order(state.size());
    std::iota(order.begin(), order.end(), 0);
    std::string smallest = key(state, order);
    while (!config_.numbered && std::ranges::next_permutation(order).found)
        smallest = std::min(smallest, key(state, order));
    return smallest;
}

// Everything that the future depends on: of the dead only their records.
std::string ShrinkExplorer::key(const State& state, const std::vector<int>& order) const {
    std::string key;
    const auto add_record = [&](const ShrinkRecord& record) {
        append(key, static_cast<std::uint64_t>(record.phase) | static_cast<std::uint64_t>(record.claim) << 3 |
                        std::uint64_t{record.mapped} << 5 | std::uint64_t{record.has_left} << 6);
        append(key, renumbered(record.failed.words()[0], order));
        append(key, static_cast<std::uint64_t>(record.slot + 1));
        append(key, record.free[0]);
    };
    for (const int member : order) {
        const Member& one = state[static_cast<std::size_t>(member)];
        const ShrinkAgreement& local = one.agreement;
        append(key, std::uint64_t{one.entered} | std::uint64_t{one.crashed} << 1);
        append(key, renumbered(one.absent_at_crash, order));
        add_record(one.published);
        if (one.crashed || one.published.phase == Phase::decided) continue;
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
