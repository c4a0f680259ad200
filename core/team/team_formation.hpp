// How PEs that have nothing in common but an id become a team, in an order that each says for itself. The PE that made
// the id leads: it hears who comes and as which member, tells all who they are, and proposes slots until all have one.
//
//     a member                          the leader
//     hello: size, index, free  ---->   all have come, or somebody contradicts
//                               <----   roster: the members' PEs, in pieces; or refusal: why
//                               <----   proposal: a slot
//     vote: taken, mapped, free ---->
//                               <----   verdict: begin, or wait for another proposal; or refusal
//
// Then the id is closed: who comes later finds out from the leader's table (TeamFormationOutcomes).
//
// One of these is one PE's part in one team; one thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/team/team_mailbox.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

class TeamFormation {
public:
    // The leader of a team of this id.
    static int leader_of(std::uint64_t id) { return static_cast<int>(id >> 32) - 1; }
    static std::uint32_t number_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }
    static std::uint64_t id_of(int leader, std::uint32_t number) {
        return (static_cast<std::uint64_t>(leader) + 1) << 32 | number;
    }

    // `size`: of the team; `index`: of this PE there.
    TeamFormation(TeamTable& table, TeamMailbox& mailbox, TeamFormationOutcomes& outcomes, std::uint64_t id, int size,
                  int index)
        : table_(table), mailbox_(mailbox), outcomes_(outcomes), id_(id), size_(size), index_(index) {}

    // Collective over the members to be. The messages of the id are expected, and will be forgotten by the caller.
    Status run(int contexts_wanted, TeamName& made);
    // Instead, when this PE has come with the id before: fails, and so does what is under way with it.
    Status reject_reuse();

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
        slots,
        memory,
        surplus,
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
        TeamSlotSet free;
    };
    struct Vote {
        Granted granted;
        bool mapped;
        TeamSlotSet free;
    };

    // The leader's part.
    Status lead();
    Status receive_hellos();
    [[nodiscard]] std::optional<Refusal> contradiction() const;
    Status send_roster();
    Status choose_slot();
    Status receive_votes();
    Status refuse(const Refusal& why);
    Status refuse_surplus(int pe);
    Status send_to_all(TeamMessage message);
    void close(const Status& done);
    [[nodiscard]] bool has_arrived(int pe) const;
    [[nodiscard]] TeamMessage refusal_message(const Refusal& why) const;

    // The others'.
    Status follow();
    [[nodiscard]] TeamMessage hello_message() const;
    Status send_hello();
    // The failure, where the leader has closed the id.
    [[nodiscard]] Status check_closed() const;
    Status handle(const TeamMessage& message, bool& finished);

    // Both.
    Vote try_slot(int slot);
    void release_slot();
    [[nodiscard]] Refusal parse_refusal(std::span<const std::uint32_t> words) const;
    [[nodiscard]] Status text_of(const Refusal& why) const;
    [[nodiscard]] TeamMessage message(Kind kind) const;
    // Waits for one; `what.needs` may grow meanwhile.
    Result<TeamMessage> next(const WaitFor& what, std::optional<std::uint32_t> number = {});

    TeamTable& table_;
    TeamMailbox& mailbox_;
    TeamFormationOutcomes& outcomes_;
    std::uint64_t id_;
    int size_;
    int index_;
    int slot_ = -1;
    bool taken_ = false;
    bool mapped_ = true;              // by all
    std::optional<Refusal> refusal_;  // of the leader: why there is no team
    Members members_;
    std::vector<int> pes_;           // the members, as far as known
    std::uint32_t messages_ = 0;     // the leader's so far
    std::vector<Arrival> arrivals_;  // of the leader: itself first
    std::vector<int> arrived_pes_;   // the same, for waits
    std::vector<Vote> votes_;        // of the leader: itself first
};

}  // namespace npushmem
