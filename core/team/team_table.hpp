// The teams of this PE, and how new ones come into being: the members of the parent agree on a free slot of the pool,
// take it, and meet. Any thread; calls that are collective over one team are made by one thread at a time.
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

// Which team, for good: a slot and how often it has been used, so that the name of a team that is gone names no other.
// 0 names none.
struct TeamName {
    std::uint64_t value = 0;
    friend bool operator==(const TeamName&, const TeamName&) = default;
};

class TeamTable {
public:
    // Of each slice, for the state of teams, and for messages about them; so that a job of a million PEs has some room
    // as well.
    static constexpr std::uint64_t pool_bytes = 8ULL << 20;

    // `pool`: offset of that in every slice. `commit` gives a range of the own slice its memory. The world is slot 0,
    // `shared` slot 1: of PEs that all map each other, and say the same. `all_mapped`: all PEs of the job do.
    static Result<std::unique_ptr<TeamTable>> make(TeamResources resources, std::uint64_t pool,
                                                   std::function<Status(std::uint64_t, std::uint64_t)> commit,
                                                   Members shared, bool all_mapped);
    TeamTable(const TeamTable&) = delete;
    TeamTable& operator=(const TeamTable&) = delete;

    [[nodiscard]] Team& world() { return *teams_[0]; }
    [[nodiscard]] Team& shared() { return *teams_[1]; }
    // Null when there is none of that name, any more or at all.
    [[nodiscard]] Team* find(TeamName name) const;

    // Was there a team of this name, on this PE? For messages.
    [[nodiscard]] bool existed(TeamName name);

    // A team to be made; `members` are world PEs.
    struct TeamSpec {
        Members members;
        int contexts_wanted = 0;
    };
    using Arguments = std::array<std::uint64_t, 3>;
    // What the callers' arguments must be: alike, or triplets (start, stride, size) that name PEs of the parent, of
    // which each is what all the PEs that it names have given: several teams at a time.
    enum class ArgumentRule { alike, triplets };
    struct SplitRules {
        ArgumentRule rule;
        // Of one PE's arguments by themselves; the same on all PEs. None: all are good.
        std::function<Status(const Arguments&)> check = {};
    };
    // Collective over the parent, one or two specs. PEs of one parent may wish for different teams (rows and columns),
    // as long as those that overlap are the same. `made` has no name where this PE is not a member. A PE whose
    // arguments are refused comes as well, with no specs, or with an empty `made` if that is what is wrong with them:
    // all get the same failure, which names it.
    Status split(Team& parent, const Arguments& arguments, const SplitRules& rules, std::span<const TeamSpec> specs,
                 std::span<TeamName> made);
    // A team of PEs that have nothing in common but an id, which one of them has made: collective over these, each with
    // its own index of `npes`. See TeamFormation.
    [[nodiscard]] std::uint64_t make_id();
    Status form_team(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made);
    // Collective over its members, with no operation of it under way.
    Status destroy(TeamName name);

    // For teams that come about in another way (active sets): takes a slot, false if it is not free; gives it back;
    // makes its memory ready, before anybody may write there; begins a team there whose members have all done both.
    [[nodiscard]] TeamSlotSet free_slots();
    bool claim_slot(int slot);
    void release_slot(int slot);
    Status prepare(int slot);
    TeamName begin(int slot, const TeamSpec& wish, bool mapped);
    // Does this PE map all of them?
    [[nodiscard]] bool maps(const PeRange& members) const;
    [[nodiscard]] const TeamResources& resources() const { return resources_; }

private:
    TeamTable(TeamResources resources, std::uint64_t pool, std::function<Status(std::uint64_t, std::uint64_t)> commit,
              int slots);
    void begin_predefined(Members shared, bool all_mapped);
    // Before the slots: the messages, and what became of ids.
    static constexpr std::uint64_t slots_offset = TeamMailbox::bytes + TeamFormationOutcomes::bytes;
    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return pool_ + slots_offset + static_cast<std::uint64_t>(slot) * stride_;
    }
    [[nodiscard]] std::atomic_ref<std::uint64_t> departed(std::uint64_t state_offset) const;
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
    std::uint32_t ids_ = 0;                          // made so far; under lock_
    std::set<std::uint64_t> open_ids_;               // made here and not used yet; under lock_
    TeamSlotSet free_{};                             // under lock_
    std::vector<bool> committed_;                    // under lock_, by units of the pool
    std::vector<std::uint32_t> uses_;                // by slot, under lock_
    std::vector<std::atomic<std::uint64_t>> names_;  // by slot, 0: no team. Release when set, acquire when read.
    std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace npushmem
