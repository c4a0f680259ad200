// Forms a team of PEs that share only an id. Each PE states its index in the team. The PE that made the id is the
// leader: it collects the members, sends the list of members to all, and proposes slots until all have one.
//
//     a member                          the leader
//     hello: size, index, free  ---->   all have arrived, or two hellos conflict
//                               <----   roster: the members' PEs, in pieces; or refusal: the reason
//                               <----   proposal: a slot
//     vote: taken, mapped, free ---->
//                               <----   verdict: begin, or wait for another proposal; or refusal
//
// Then the id is closed: later PEs read the result from the leader's table (TeamFormationOutcomes).
//
// An object is one PE's part in one team; for one thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/team/team_mailbox.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

class TeamFormation {
public:
    // Returns the leader of a team of this id.
    static int leader_of(std::uint64_t id) { return static_cast<int>(id >> 32) - 1; }
    static std::uint32_t number_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }
    static std::uint64_t id_of(int leader, std::uint32_t number) {
        return (static_cast<std::uint64_t>(leader) + 1) << 32 | number;
    }

    // `size` of the team; `index` of this PE in it.
    TeamFormation(TeamTable& table, TeamMailbox& mailbox, TeamFormationOutcomes& outcomes, std::uint64_t id, int size,
                  int index)
        : table_(table), mailbox_(mailbox), outcomes_(outcomes), id_(id), size_(size), index_(index) {}

    // Collective over the future members. The id's messages must be expected; the caller forgets the id afterwards.
    Status run(int contexts_wanted, TeamName& made);
    // Call it instead of run() when this PE has used the id before: it fails, and so does the formation in progress.
    Status reject_reuse();

private:
    enum Kind : std::uint32_t { hello, roster, proposal, vote, verdict, refusal };
    enum Granted : std::uint32_t { yes, no, never };
    // Why the formation failed; the details, numbers and PEs, depend on it.
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

    // For the leader.
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

    // For the other members.
    Status follow();
    [[nodiscard]] TeamMessage hello_message() const;
    Status send_hello();
    // Returns the failure if the leader has closed the id.
    [[nodiscard]] Status check_closed() const;
    Status handle(const TeamMessage& message, bool& finished);

    // For both.
    Vote try_slot(int slot);
    void release_slot();
    [[nodiscard]] Refusal parse_refusal(std::span<const std::uint32_t> words) const;
    [[nodiscard]] Status text_of(const Refusal& why) const;
    [[nodiscard]] TeamMessage message(Kind kind) const;
    // Waits for a message; `what.needs` may grow meanwhile.
    Result<TeamMessage> next(const WaitFor& what, std::optional<std::uint32_t> number = {});

    TeamTable& table_;
    TeamMailbox& mailbox_;
    TeamFormationOutcomes& outcomes_;
    std::uint64_t id_;
    int size_;
    int index_;
    int slot_ = -1;
    bool taken_ = false;
    bool mapped_ = true;              // by all members
    std::optional<Refusal> refusal_;  // leader only: why the formation failed
    Members members_;
    std::vector<int> pes_;           // the members known so far
    std::uint32_t messages_ = 0;     // number of the leader's messages
    std::vector<Arrival> arrivals_;  // leader only: itself first
    std::vector<int> arrived_pes_;   // the same, for waits
    std::vector<Vote> votes_;        // leader only: itself first
};

}  // namespace npushmem
