// SPDX-License-Identifier: BSD-3-Clause
// Splits a team: its members agree on free slots for the new teams, claim them, and synchronise.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/team/team.hpp"

namespace npushmem {

// The pool of slots for the state of teams, in this PE's slice.

// A PE's answer about a slot: it claimed it; another team has it there; or the PE has no memory there and never will.
enum class SlotClaim : std::uint32_t { claimed = 1, contended = 2, unavailable = 3 };

// A team that its members have agreed on; all of them have claimed and prepared its slot.
struct AgreedTeam {
    int slot = -1;
    Members members;
    bool mapped = true;  // every member maps every member
};

// Returns the first `count` slots of the set, or all if it has fewer.
std::vector<int> first_slots(const TeamSlotSet& set, std::size_t count);

// Removes the slots that are not in `other`.
void intersect(TeamSlotSet& set, const TeamSlotSet& other);

// Any thread.
class TeamSlots {
public:
    // Commits a range of the own slice.
    using Commit = std::function<Status(std::uint64_t offset, std::uint64_t bytes)>;
    static constexpr std::uint64_t commit_unit = 4096;  // small: every PE pays for the predefined teams at its start

    // The pool is the range of `pool_bytes` at `pool` in every slice; its first `header_bytes` serve other purposes.
    // The first `predefined` slots are never free. `resources` outlives this.
    TeamSlots(const TeamResources& resources, std::uint64_t pool, std::uint64_t pool_bytes, std::uint64_t header_bytes,
              int predefined, Commit commit);
    TeamSlots(const TeamSlots&) = delete;
    TeamSlots& operator=(const TeamSlots&) = delete;

    [[nodiscard]] int count() const { return count_; }
    [[nodiscard]] TeamLayout layout(int slot) const { return {offset_of(slot), resources_.npes}; }
    // Commits the header and the first slots together: the PEs of a host commit memory one after another.
    Status commit_first(int slots);

    [[nodiscard]] TeamSlotSet free();
    // Takes a slot; false: it is not free.
    bool claim(int slot);
    void release(int slot);
    // Commits and clears the memory of a claimed slot, before any PE writes there.
    Status prepare(int slot);

private:
    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return pool_ + header_bytes_ + static_cast<std::uint64_t>(slot) * slot_bytes_;
    }
    Status commit(std::uint64_t begin, std::uint64_t bytes);

    const TeamResources& resources_;
    std::uint64_t pool_;
    std::uint64_t header_bytes_;
    std::uint64_t slot_bytes_;
    int count_;
    Commit commit_;
    std::mutex lock_;
    TeamSlotSet free_{};           // under lock_
    std::vector<bool> committed_;  // under lock_, by commit_unit of the pool
};

// Specifies a new team; `members` are world PEs.
struct TeamSpec {
    Members members;
    int contexts_wanted = 0;
};

using SplitArguments = std::array<std::uint64_t, 3>;

// The rule for the callers' arguments. alike: equal on all. triplets: each names PEs of the parent by (start, stride,
// size) and equals those of all PEs that it names; this makes several teams at a time.
enum class SplitArgumentRule { alike, triplets };

struct SplitRules {
    SplitArgumentRule rule;
    // Checks one PE's arguments on their own; the same on all PEs. Empty: accepts all.
    std::function<Status(const SplitArguments&)> check = {};
};

// One attempt of the parent's members to agree. Each publishes its record in the workspaces of the parent's
// collectives, and reads those of all after a barrier. For one thread, while the parent runs no other collective.
class TeamSplit {
public:
    // All references outlive this.
    TeamSplit(const TeamResources& resources, TeamSlots& slots, Team& parent, const SplitArguments& arguments,
              const SplitRules& rules, std::span<const TeamSpec> specs);

    // Chooses slots that are free at all members, one for each spec. `has_output`: this PE has passed memory for the
    // new teams' names.
    Status propose(bool has_output);
    // Claims the slots; another thread of a PE may have been faster. *granted: all members claimed all slots.
    Status claim(bool& granted);
    // Returns whether this PE is a member of a new team.
    [[nodiscard]] bool is_member(std::size_t i) const { return specs_[i].members.index_of(resources_.my_pe) >= 0; }
    // Returns a new team, after claim() has granted it.
    [[nodiscard]] AgreedTeam agreed(std::size_t i) const { return {slots_[i], specs_[i].members, mapped_by_all(i)}; }

private:
    [[nodiscard]] const SplitRecord& of(int member) const { return all_[static_cast<std::size_t>(member)]; }
    [[nodiscard]] bool mapped_by_all(std::size_t i) const;
    [[nodiscard]] Status check() const;
    [[nodiscard]] Status compare() const;
    [[nodiscard]] bool each_named_agrees() const;
    [[nodiscard]] Status mismatch(int member) const;
    Status exchange(SlotClaim claim);

    const TeamResources& resources_;
    TeamSlots& pool_;
    Team& parent_;
    const SplitRules& rules_;
    std::span<const TeamSpec> specs_;
    SplitRecord own_{};
    std::vector<SplitRecord> all_;
    std::vector<int> slots_;  // by spec
};

}  // namespace npushmem
