#include "core/team/team_slots.hpp"

#include <algorithm>
#include <cstring>

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
      slot_bytes_(TeamLayout::bytes(resources.npes)),
      count_(static_cast<int>(std::min<std::uint64_t>(max_teams, (pool_bytes - header_bytes) / slot_bytes_))),
      commit_(std::move(commit)),
      committed_(pool_bytes / CommitMap::unit) {
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
    const auto last = committed_.begin() + static_cast<std::ptrdiff_t>((begin + bytes - 1) / CommitMap::unit) + 1;
    auto first = committed_.begin() + static_cast<std::ptrdiff_t>(begin / CommitMap::unit);
    while ((first = std::find(first, last, false)) != last) {
        const auto end = std::find(first, last, true);
        const auto at = static_cast<std::uint64_t>(first - committed_.begin());
        const auto units = static_cast<std::uint64_t>(end - first);
        if (Status done = commit_(pool_ + at * CommitMap::unit, units * CommitMap::unit); !done.ok()) return done;
        std::fill(first, end, true);
    }
    return {};
}

}  // namespace npushmem
