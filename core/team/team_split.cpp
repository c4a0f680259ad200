// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstring>

#include "core/coll/steps.hpp"
#include "core/memory/symmetric_heap.hpp"

namespace npushmem {

namespace {

std::uint64_t bit_of(int slot) { return std::uint64_t{1} << (slot % 64); }
std::uint64_t& word_of(TeamSlotSet& set, int slot) { return set[static_cast<std::size_t>(slot) / 64]; }
bool contains(const TeamSlotSet& set, int slot) {
    return (set[static_cast<std::size_t>(slot) / 64] & bit_of(slot)) != 0;
}

}  // namespace

std::vector<int> first_slots(const TeamSlotSet& set, std::size_t count) {
    std::vector<int> slots;
    for (int slot = 0; slot < max_teams && slots.size() < count; ++slot)
        if (contains(set, slot)) slots.push_back(slot);
    return slots;
}

void intersect(TeamSlotSet& set, const TeamSlotSet& other) {
    for (std::size_t i = 0; i < set.size(); ++i) set[i] &= other[i];
}

TeamSlots::TeamSlots(const TeamResources& resources, std::uint64_t pool, std::uint64_t pool_bytes,
                     std::uint64_t header_bytes, int predefined, Commit commit)
    : resources_(resources),
      pool_(pool),
      header_bytes_(header_bytes),
      slot_bytes_(TeamLayout::bytes(resources.npes, resources.layout.hosts() > 1)),
      count_(static_cast<int>(std::min<std::uint64_t>(max_teams, (pool_bytes - header_bytes) / slot_bytes_))),
      commit_(std::move(commit)),
      committed_(pool_bytes / commit_unit) {
    for (int slot = predefined; slot < count_; ++slot) word_of(free_, slot) |= bit_of(slot);
}

Status TeamSlots::commit_first(int slots) {
    return commit(0, header_bytes_ + static_cast<std::uint64_t>(slots) * slot_bytes_);
}

TeamSlotSet TeamSlots::free() {
    const std::lock_guard guard(lock_);
    return free_;
}

bool TeamSlots::claim(int slot) {
    const std::lock_guard guard(lock_);
    const bool was_free = contains(free_, slot);
    word_of(free_, slot) &= ~bit_of(slot);
    return was_free;
}

void TeamSlots::release(int slot) {
    const std::lock_guard guard(lock_);
    word_of(free_, slot) |= bit_of(slot);
}

// No PE writes into the slot before all members have synchronised again, and the writes of an earlier team arrived
// before that team was destroyed.
Status TeamSlots::prepare(int slot) {
    if (Status done = commit(offset_of(slot) - pool_, slot_bytes_); !done.ok()) return done;
    std::memset(resources_.own_slice + offset_of(slot), 0, slot_bytes_);
    return {};
}

// `begin` is an offset in the pool.
Status TeamSlots::commit(std::uint64_t begin, std::uint64_t bytes) {
    const std::lock_guard guard(lock_);
    const auto last = committed_.begin() + static_cast<std::ptrdiff_t>((begin + bytes - 1) / commit_unit) + 1;
    auto first = committed_.begin() + static_cast<std::ptrdiff_t>(begin / commit_unit);
    while ((first = std::find(first, last, false)) != last) {
        const auto end = std::find(first, last, true);
        const auto at = static_cast<std::uint64_t>(first - committed_.begin());
        const auto units = static_cast<std::uint64_t>(end - first);
        if (Status done = commit_(pool_ + at * commit_unit, units * commit_unit); !done.ok()) return done;
        std::fill(first, end, true);
    }
    return {};
}

namespace {

bool have_equal_arguments(const SplitRecord& one, const SplitRecord& other) {
    return std::ranges::equal(one.arguments, other.arguments);
}

SlotClaim claim_in(const SplitRecord& record) { return static_cast<SlotClaim>(record.claim); }

}  // namespace

TeamSplit::TeamSplit(const TeamResources& resources, TeamSlots& slots, Team& parent, const SplitArguments& arguments,
                     const SplitRules& rules, std::span<const TeamSpec> specs)
    : resources_(resources), pool_(slots), parent_(parent), rules_(rules), specs_(specs) {
    own_.free = slots.free();
    std::ranges::copy(arguments, own_.arguments);
}

Status TeamSplit::propose(bool has_output) {
    if (Status exchanged = exchange(has_output ? SlotClaim::claimed : SlotClaim::unavailable); !exchanged.ok())
        return exchanged;
    if (Status checked = check(); !checked.ok()) return checked;
    if (Status compared = compare(); !compared.ok()) return compared;
    TeamSlotSet free = own_.free;
    for (const SplitRecord& record : all_) intersect(free, record.free);
    slots_ = first_slots(free, specs_.size());
    if (slots_.size() == specs_.size()) return {};
    return {Code::memory, fmt::format("some PE has {} teams already; destroy some first", pool_.count())};
}

Status TeamSplit::claim(bool& granted) {
    SlotClaim own = SlotClaim::claimed;
    Status prepared;
    std::vector<bool> claimed;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        claimed.push_back(pool_.claim(slots_[i]));
        if (!claimed.back()) own = SlotClaim::contended;
        if (claimed.back() && is_member(i) && prepared.ok()) prepared = pool_.prepare(slots_[i]);
        if (maps_all(resources_, specs_[i].members.range())) own_.mapped |= 1U << i;
    }
    const Status exchanged = exchange(prepared.ok() ? own : SlotClaim::unavailable);
    SlotClaim worst = SlotClaim::claimed;
    for (const SplitRecord& record : all_) worst = std::max(worst, claim_in(record));
    granted = exchanged.ok() && worst == SlotClaim::claimed;
    for (std::size_t i = 0; i < slots_.size(); ++i)
        if (claimed[i] && !(granted && is_member(i))) pool_.release(slots_[i]);
    if (!exchanged.ok() || !prepared.ok()) return exchanged.ok() ? prepared : exchanged;
    return worst == SlotClaim::unavailable
               ? Status{Code::memory, "another PE has no memory left for the state of the team"}
               : Status{};
}

bool TeamSplit::mapped_by_all(std::size_t i) const {
    const PeRange& members = specs_[i].members.range();
    for (int m = 0; m < members.count; ++m)
        if ((of(parent_.members().index_of(members.at(m))).mapped >> i & 1U) == 0) return false;
    return true;
}

// All members check the same records, here and in compare(), so all get the same result.
Status TeamSplit::check() const {
    for (int member = 0; member < parent_.size(); ++member) {
        const SplitRecord& record = of(member);
        const auto pe = fmt::format("PE {} of the team {}", member, parent_.name());
        if (claim_in(record) == SlotClaim::unavailable)
            return {Code::argument, pe + " gave NULL for the handle of the new team"};
        if (!rules_.check) continue;
        if (Status checked = rules_.check(std::to_array(record.arguments)); !checked.ok()) return checked.within(pe);
    }
    return {};
}

Status TeamSplit::compare() const {
    for (int member = 0; member < parent_.size(); ++member) {
        if (have_equal_arguments(own_, of(member))) continue;
        return rules_.rule == SplitArgumentRule::triplets && each_named_agrees() ? Status{} : mismatch(member);
    }
    return {};
}

bool TeamSplit::each_named_agrees() const {
    return std::ranges::all_of(all_, [this](const SplitRecord& record) {
        const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(record.arguments[i]); };
        for (std::int64_t i = 0; i < at(2); ++i)
            if (!have_equal_arguments(record, of(static_cast<int>(at(0) + i * at(1))))) return false;
        return true;
    });
}

Status TeamSplit::mismatch(int member) const {
    return {Code::mismatch, fmt::format("PE {} of the team {} gave {} and PE {} gave {}; all must give the same "
                                        "arguments",
                                        parent_.index(), parent_.name(), fmt::join(own_.arguments, ", "), member,
                                        fmt::join(of(member).arguments, ", "))};
}

Status TeamSplit::exchange(SlotClaim claim) {
    own_.claim = static_cast<std::uint16_t>(claim);
    // The number of the next barrier, equal on members that enter the same one.
    own_.tag = static_cast<std::uint16_t>(parent_.barrier().barriers() + 1);
    all_.assign(static_cast<std::size_t>(parent_.size()), SplitRecord{});
    const auto published = coll::publish(parent_, &own_, sizeof own_);
    Status done = published.status();
    for (int member = 0; member < parent_.size() && done.ok(); ++member) {
        SplitRecord& record = all_[static_cast<std::size_t>(member)];
        done = coll::read(parent_, published.value().of(member), &record, sizeof record);
        // Fatal by default: that member uses the other halves of the workspaces from now on.
        if (done.ok() && record.tag != own_.tag)
            done = {Code::protocol, fmt::format("PE {} of the team {} makes another collective call where PE {} splits "
                                                "the team; all must make the same calls in the same order",
                                                member, parent_.name(), parent_.index())};
    }
    return done;
}

}  // namespace npushmem
