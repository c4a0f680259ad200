// The teams of this PE, and how new ones come into being: the members of the parent agree on a free place of the pool,
// take it, and meet. Any thread; calls that are collective over one team are made by one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/team/closed_ids.hpp"
#include "core/team/team.hpp"
#include "core/team/team_mail.hpp"

namespace npushmem {

// Which team, for good: a place and how often it has been used, so that the name of a team that is gone names no other.
// 0 names none.
struct TeamName {
    std::uint64_t value = 0;
    friend bool operator==(const TeamName&, const TeamName&) = default;
};

class TeamTable {
public:
    // Of each slice, for the state of teams, and for letters about them; so that a job of a million PEs has some room
    // as well.
    static constexpr std::uint64_t pool_bytes = 8ULL << 20;

    // `pool`: offset of that in every slice. `commit` gives a range of the own slice its memory. The world is place 0,
    // `shared` place 1: of PEs that all map each other, and say the same. `all_mapped`: all PEs of the job do.
    static Result<std::unique_ptr<TeamTable>> make(TeamParts parts, std::uint64_t pool,
                                                   std::function<Status(std::uint64_t, std::uint64_t)> commit,
                                                   Members shared, bool all_mapped);
    TeamTable(const TeamTable&) = delete;
    TeamTable& operator=(const TeamTable&) = delete;

    [[nodiscard]] Team& world() { return *teams_[0]; }
    [[nodiscard]] Team& shared() { return *teams_[1]; }
    // Null when there is none of that name, any more or at all.
    [[nodiscard]] Team* find(TeamName name) const;

    // Was there a team of this name, on this PE? For messages.
    [[nodiscard]] bool was_there(TeamName name);

    // A team to be made; `members` are world PEs.
    struct Wish {
        Members members;
        int contexts_wanted = 0;
    };
    using Arguments = std::array<std::uint64_t, 3>;
    // What the callers' arguments must be: alike, or triplets (start, stride, size) that name PEs of the parent, of
    // which each is what all the PEs that it names have given: several teams at a time.
    enum class Given { alike, triplets };
    struct Terms {
        Given given;
        // Of one PE's arguments by themselves; the same on all PEs. None: all are good.
        std::function<Status(const Arguments&)> check = {};
    };
    // Collective over the parent, one or two wishes. PEs of one parent may wish for different teams (rows and columns),
    // as long as those that overlap are the same. `made` has no name where this PE is not a member. A PE whose
    // arguments are refused comes as well, with no wishes, or with an empty `made` if that is what is wrong with them:
    // all get the same failure, which names it.
    Status split(Team& parent, const Arguments& arguments, const Terms& terms, std::span<const Wish> wishes,
                 std::span<TeamName> made);
    // A team of PEs that have nothing in common but an id, which one of them has made: collective over these, each with
    // its own index of `npes`. See TeamGathering.
    [[nodiscard]] std::uint64_t make_id();
    Status gather(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made);
    // Collective over its members, with no operation of it under way.
    Status destroy(TeamName name);

    // For teams that come about in another way (active sets): takes a place, false if it is not free; gives it back;
    // makes its memory ready, before anybody may write there; begins a team there whose members have all done both.
    [[nodiscard]] PlaceSet free_places();
    bool take(int place);
    void give_back(int place);
    Status prepare(int place);
    TeamName begin(int place, const Wish& wish, bool mapped);
    // Does this PE map all of them?
    [[nodiscard]] bool maps(const PeRange& members) const;
    [[nodiscard]] const TeamParts& parts() const { return parts_; }

private:
    TeamTable(TeamParts parts, std::uint64_t pool, std::function<Status(std::uint64_t, std::uint64_t)> commit,
              int places);
    void begin_predefined(Members shared, bool all_mapped);
    // Before the places: the letters, and what became of ids.
    static constexpr std::uint64_t places_at = TeamMail::bytes + ClosedIds::bytes;
    [[nodiscard]] std::uint64_t offset_of(int place) const {
        return pool_ + places_at + static_cast<std::uint64_t>(place) * stride_;
    }
    [[nodiscard]] std::atomic_ref<std::uint64_t> departed(std::uint64_t place) const;
    class Talk;
    Status commit(std::uint64_t begin, std::uint64_t bytes);
    Status check_id(std::uint64_t id);
    Status leave(Team& team);

    TeamParts parts_;
    std::uint64_t pool_;
    std::uint64_t stride_;
    std::function<Status(std::uint64_t, std::uint64_t)> commit_;
    int places_;
    TeamMail mail_;
    ClosedIds closed_;
    std::mutex lock_;
    std::uint32_t ids_ = 0;                          // made so far; under lock_
    std::set<std::uint64_t> open_ids_;               // made here and not used yet; under lock_
    PlaceSet free_{};                                // under lock_
    std::vector<bool> committed_;                    // under lock_, by units of the pool
    std::vector<std::uint32_t> uses_;                // by place, under lock_
    std::vector<std::atomic<std::uint64_t>> names_;  // by place, 0: no team. Release when set, acquire when read.
    std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace npushmem
