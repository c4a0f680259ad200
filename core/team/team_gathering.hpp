// How PEs that have nothing in common but an id become a team, in an order that each says for itself. The PE that made
// the id leads: it hears who comes and as which member, tells all who they are, and proposes places until all have one.
//
//     a member                          the leader
//     hello: size, index, free  ---->   all have come, or somebody contradicts
//                               <----   roster: the members' PEs, in parts; or refusal: why
//                               <----   proposal: a place
//     vote: taken, mapped, free ---->
//                               <----   verdict: begin, or wait for another proposal; or refusal
//
// Then the id is closed: who comes later finds out by the leader's board (ClosedIds).
//
// One of these is one PE's part in one team; one thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/team/closed_ids.hpp"
#include "core/team/team_mail.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

class TeamGathering {
public:
    // The leader of a team of this id.
    static int leader_of(std::uint64_t id) { return static_cast<int>(id >> 32) - 1; }
    static std::uint32_t number_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }
    static std::uint64_t id_of(int leader, std::uint32_t number) {
        return (static_cast<std::uint64_t>(leader) + 1) << 32 | number;
    }

    // `size`: of the team; `index`: of this PE there.
    TeamGathering(TeamTable& table, TeamMail& mail, ClosedIds& closed, std::uint64_t id, int size, int index)
        : table_(table), mail_(mail), closed_(closed), id_(id), size_(size), index_(index) {}

    // Collective over the members to be. The letters of the id are expected, and will be forgotten by the caller.
    Status run(int contexts_wanted, TeamName& made);
    // Instead, when this PE has come with the id before: fails, and so does what is under way with it.
    Status come_again();

private:
    enum Kind : std::uint32_t { hello, roster, proposal, vote, verdict, refusal };
    enum Granted : std::uint32_t { yes, no, never };
    // Why there will be no team; what the two numbers and the two PEs are depends on it.
    enum class Reason : std::uint32_t {
        sizes,
        size_range,
        indices,
        index_range,
        twice,
        missing,
        places,
        memory,
        one_more,
        failed
    };
    struct Refusal {
        Reason reason;
        std::uint32_t details[4];
    };
    struct Arrival {
        int pe;
        int size;
        int index;
        PlaceSet free;
    };
    struct Vote {
        Granted granted;
        bool mapped;
        PlaceSet free;
    };

    // The leader's part.
    Status lead();
    Status hear_all();
    [[nodiscard]] std::optional<Refusal> contradiction() const;
    Status tell_roster();
    Status choose_place();
    Status hear_votes();
    Status refuse(const Refusal& why);
    Status refuse_one_more(int pe);
    Status tell_all(Letter letter);
    void close(const Status& done);
    [[nodiscard]] bool has_come(int pe) const;
    [[nodiscard]] Letter letter_of(const Refusal& why) const;

    // The others'.
    Status follow();
    [[nodiscard]] Letter hello_letter() const;
    Status say_hello();
    // The failure, where the leader has closed the id.
    [[nodiscard]] Status look_whether_closed() const;
    Status act_on(const Letter& letter, bool& finished);

    // Both.
    Vote try_place(int place);
    void give_back();
    [[nodiscard]] Refusal said_in(std::span<const std::uint32_t> words) const;
    [[nodiscard]] Status text_of(const Refusal& why) const;
    [[nodiscard]] Letter letter(Kind kind) const;
    // Waits for one; `what.needs` may grow meanwhile.
    Result<Letter> next(const WaitFor& what, std::optional<std::uint32_t> number = {});

    TeamTable& table_;
    TeamMail& mail_;
    ClosedIds& closed_;
    std::uint64_t id_;
    int size_;
    int index_;
    int place_ = -1;
    bool taken_ = false;
    bool mapped_ = true;              // by all
    std::optional<Refusal> refusal_;  // of the leader: why there is no team
    Members members_;
    std::vector<int> pes_;       // the members, as far as known
    std::uint32_t letters_ = 0;  // the leader's so far
    std::vector<Arrival> come_;  // of the leader: itself first
    std::vector<int> come_pes_;  // the same, for waits
    std::vector<Vote> votes_;    // of the leader: itself first
};

}  // namespace npushmem
