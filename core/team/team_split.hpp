// Splits a team: its members agree on free slots for the new teams, claim them, and synchronise.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/team/team_slots.hpp"

namespace npushmem {

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

// One attempt of the parent's members to agree. Each writes its part into its split_record, all synchronise, and each
// reads all records. For one thread.
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
