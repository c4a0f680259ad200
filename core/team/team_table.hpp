// The teams of this PE. To split a team, its members agree on a free slot of the pool, claim it, and synchronise. Any
// thread may call it; one thread at a time makes the collective calls of a team.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/team/team.hpp"
#include "core/team/team_mailbox.hpp"

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
    static constexpr std::uint64_t pool_bytes = 8ULL << 20;

    // `pool` is the offset of these bytes in every slice. `commit` commits a range of the own slice. The world is slot
    // 0, `shared` is slot 1: PEs that all map each other, equal on each of them. `all_mapped`: all PEs of the job map
    // each other.
    static Result<std::unique_ptr<TeamTable>> make(TeamResources resources, std::uint64_t pool,
                                                   std::function<Status(std::uint64_t, std::uint64_t)> commit,
                                                   Members shared, bool all_mapped);
    TeamTable(const TeamTable&) = delete;
    TeamTable& operator=(const TeamTable&) = delete;

    [[nodiscard]] Team& world() { return *teams_[0]; }
    [[nodiscard]] Team& shared() { return *teams_[1]; }
    // Null when no team has that name, or no longer.
    [[nodiscard]] Team* find(TeamName name) const;

    // Returns whether a team of this name existed on this PE, for messages.
    [[nodiscard]] bool existed(TeamName name);

    // Specifies a new team; `members` are world PEs.
    struct TeamSpec {
        Members members;
        int contexts_wanted = 0;
    };
    using Arguments = std::array<std::uint64_t, 3>;
    // The rule for the callers' arguments. alike: equal on all. triplets: each names PEs of the parent by (start,
    // stride, size) and equals those of all PEs that it names; this makes several teams at a time.
    enum class ArgumentRule { alike, triplets };
    struct SplitRules {
        ArgumentRule rule;
        // Checks one PE's arguments on their own; the same on all PEs. Empty: accepts all.
        std::function<Status(const Arguments&)> check = {};
    };
    // Creates one or two teams; collective over the parent. PEs of one parent may specify different teams (rows and
    // columns) if overlapping teams are equal. `made` has no name where this PE is not a member. A PE with rejected
    // arguments takes part too: with no specs, or with an empty `made` if that is the error. All PEs get the same
    // failure, which names that PE.
    Status split(Team& parent, const Arguments& arguments, const SplitRules& rules, std::span<const TeamSpec> specs,
                 std::span<TeamName> made);
    // Forms a team of PEs that share only an id, which one of them made. Collective over these PEs, each with its own
    // index of `npes`. See TeamFormation.
    [[nodiscard]] std::uint64_t make_id();
    Status form_team(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made);
    // Collective over the team's members; none of its operations may be in progress.
    Status destroy(TeamName name);

    // For teams that form in another way (active sets). claim_slot takes a slot; false: it is not free. release_slot
    // returns it. prepare commits its memory, before any PE writes there. begin creates a team there, after all members
    // have claimed and prepared it.
    [[nodiscard]] TeamSlotSet free_slots();
    bool claim_slot(int slot);
    void release_slot(int slot);
    Status prepare(int slot);
    TeamName begin(int slot, const TeamSpec& wish, bool mapped);
    // Returns whether this PE maps all of them.
    [[nodiscard]] bool maps(const PeRange& members) const;
    [[nodiscard]] const TeamResources& resources() const { return resources_; }

private:
    TeamTable(TeamResources resources, std::uint64_t pool, std::function<Status(std::uint64_t, std::uint64_t)> commit,
              int slots);
    void begin_predefined(Members shared, bool all_mapped);
    // The slots follow the mailbox and the outcomes of ids.
    static constexpr std::uint64_t slots_offset = TeamMailbox::bytes + TeamFormationOutcomes::bytes;
    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return pool_ + slots_offset + static_cast<std::uint64_t>(slot) * stride_;
    }
    [[nodiscard]] TeamLayout layout_of(int slot) const { return {offset_of(slot), resources_.npes}; }
    [[nodiscard]] std::atomic_ref<std::uint64_t> departed(const Team& team) const;
    class SplitProtocol;
    Status commit(std::uint64_t begin, std::uint64_t bytes);
    Status check_id(std::uint64_t id);
    Status leave(Team& team);

    TeamResources resources_;
    std::uint64_t pool_;
    std::uint64_t stride_;
    std::function<Status(std::uint64_t, std::uint64_t)> commit_;
    int slots_;
    TeamMailbox mailbox_;
    TeamFormationOutcomes outcomes_;
    std::mutex lock_;
    std::uint32_t ids_ = 0;                          // number of ids made; under lock_
    std::set<std::uint64_t> open_ids_;               // made here and not used yet; under lock_
    TeamSlotSet free_{};                             // under lock_
    std::vector<bool> committed_;                    // under lock_, by units of the pool
    std::vector<std::uint32_t> uses_;                // by slot, under lock_
    std::vector<std::atomic<std::uint64_t>> names_;  // by slot, 0: no team. Stored with release, loaded with acquire
    std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace npushmem
