// SPDX-License-Identifier: BSD-3-Clause
// The teams of this PE, by name. Any thread may call it; one thread at a time makes the collective calls of a team.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/team/team.hpp"
#include "core/team/team_formation.hpp"
#include "core/team/team_split.hpp"

namespace npushmem {

// Identifies a team permanently: a slot and its number of uses, so that the name of a destroyed team never names
// another. 0 names no team.
struct TeamName {
    std::uint64_t value = 0;
    friend bool operator==(const TeamName&, const TeamName&) = default;
};

class TeamTable {
public:
    // Bytes of each slice for teams' state and messages, so that even a job of a million PEs has room for teams.
    static constexpr std::uint64_t pool_bytes = 64ULL << 20;
    static constexpr int predefined_teams = 4;

    // `pool` is the offset of these bytes in every slice. The world is slot 0, `shared` is slot 1: PEs that all map
    // each other, equal on each of them. Slots 2 and 3: the PEs of this host, and those with this PE's local index on
    // every host. `all_mapped`: all PEs of the job map each other.
    static Result<std::unique_ptr<TeamTable>> make(TeamResources resources, std::uint64_t pool,
                                                   TeamSlots::Commit commit, Members shared, bool all_mapped);
    TeamTable(const TeamTable&) = delete;
    TeamTable& operator=(const TeamTable&) = delete;

    [[nodiscard]] Team& world() { return *teams_[0]; }
    [[nodiscard]] Team& shared() { return *teams_[1]; }
    [[nodiscard]] Team& node() { return *teams_[2]; }
    [[nodiscard]] Team& same_local_index() { return *teams_[3]; }
    // The PEs that share the symmetric heap: the world, or the team that the last shrink of the world or of such a team
    // has made, while it exists. The number of that shrink among these; 0: the world. Equal on all members.
    [[nodiscard]] Team& living() { return *living_; }
    [[nodiscard]] std::uint64_t living_generation() const { return living_ == teams_[0].get() ? 0 : generation_; }
    // Null when no team has that name, or no longer.
    [[nodiscard]] Team* find(TeamName name) const;

    // The slot of a team is a small number; slots of predefined teams are 0 to 3. A later team may get the slot of a
    // destroyed one.
    [[nodiscard]] static int slot_of(TeamName name);
    // Returns the team in the slot, or else the last one that was there; no name if there was none.
    [[nodiscard]] TeamName name_at(int slot);

    // Returns whether a team of this name existed on this PE, for messages.
    [[nodiscard]] bool existed(TeamName name);

    // Creates one or two teams; collective over the parent. PEs of one parent may specify different teams (rows and
    // columns) if overlapping teams are equal. `made` has no name where this PE is not a member. A PE with rejected
    // arguments takes part too: with no specs, or with an empty `made` if that is the error. All PEs get the same
    // failure, which names that PE.
    Status split(Team& parent, const SplitArguments& arguments, const SplitRules& rules,
                 std::span<const TeamSpec> specs, std::span<TeamName> made);
    // Forms a team of PEs that share only an id, which one of them made. Collective over these PEs, each with its own
    // index of `npes`. See TeamFormation.
    [[nodiscard]] std::uint64_t make_id() { return formation_.make_id(); }
    Status form_team(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made);
    // Creates a team of the parent's living members, in their order; collective over them. See ShrinkAgreement.
    // `has_output`: this PE has passed memory for the name.
    Status shrink(Team& parent, bool has_output, TeamName& made);
    // Ends this PE's part of all teams: no shrink waits for it any more. No collective function may be called
    // afterwards.
    void publish_ends();
    // Returns when each other PE has published its end or is dead.
    Status wait_for_ends();
    // Collective over the team's members; none of its operations may be in progress. With a dead member the team ends
    // at once on this PE, and its slot stays in use, because others may still write there.
    Status destroy(TeamName name);

    // For teams that form in another way (active sets): begin creates a team in a slot that all members have claimed
    // and prepared.
    [[nodiscard]] TeamSlots& slots() { return slots_; }
    TeamName begin(const AgreedTeam& agreed, int contexts_wanted);
    [[nodiscard]] const TeamResources& resources() const { return resources_; }

private:
    TeamTable(TeamResources resources, std::uint64_t pool, TeamSlots::Commit commit);
    Status begin_predefined(Members shared, bool all_mapped);
    Status leave(Team& team);
    Status add_to_departed(const Team& team, int member, std::uint64_t operand);

    TeamResources resources_;
    TeamSlots slots_;
    TeamFormation formation_;  // in the header of the slots' pool
    std::mutex lock_;
    std::vector<std::uint32_t> uses_;                // by slot, under lock_
    std::vector<std::atomic<std::uint64_t>> names_;  // by slot, 0: no team. Stored with release, loaded with acquire
    std::vector<std::unique_ptr<Team>> teams_;       // by slot
    Team* living_ = nullptr;                         // one of them
    std::uint64_t generation_ = 0;
};

}  // namespace npushmem
