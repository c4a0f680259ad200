// SPDX-License-Identifier: BSD-3-Clause
// The messages by which PEs that share only an id form a team. Each PE states its index in the team. The PE that made
// the id is the leader: it collects the members, sends the list of members to all, and proposes slots until all have
// one.
//
//     a member                          the leader
//     hello: size, index, free  ---->   all have arrived, or two hellos conflict
//                               <----   roster: the members' PEs, in pieces; or refusal: the reason
//                               <----   proposal: a slot
//     vote: claim, mapped, free ---->
//                               <----   verdict: begin, or wait for another proposal; or refusal
//
// Then the id is closed: later PEs read the result from the leader's table (TeamFormationOutcomes).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/team/team_mailbox.hpp"
#include "core/team/team_split.hpp"

namespace npushmem {

// An id of a team: its leader's PE and a number that counts the leader's ids from 1.
constexpr std::uint64_t make_team_id(int leader, std::uint32_t number) {
    return (static_cast<std::uint64_t>(leader) + 1) << 32 | number;
}
constexpr int leader_of_team(std::uint64_t id) { return static_cast<int>(id >> 32) - 1; }
constexpr std::uint32_t number_of_team(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

enum class FormationMessage : std::uint32_t { hello, roster, proposal, vote, verdict, refusal };

// Why a formation failed; the details, numbers and PEs, depend on the reason. Of `failed`: a Code, and the PE that was
// lost, plus 1, or 0.
struct FormationRefusal {
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
        failed,
        dead
    };

    // In place of a PE: any reader.
    static constexpr std::uint32_t any_reader = ~std::uint32_t{0};

    Reason reason;
    std::uint32_t details[4];

    // `words` as a message and TeamFormationOutcomes carry them.
    [[nodiscard]] TeamFormationOutcomes::Words words() const;
    static FormationRefusal parse(std::span<const std::uint32_t> words, int reader);
    // Returns the same failure on all PEs.
    [[nodiscard]] Status status(int leader, int npes) const;
};

// Returns the set of slots in a hello or a vote, which follows two other words.
TeamSlotSet slots_in(const TeamMessage& message);

// One PE's part of a team to form: `size` of the team, `index` of the PE.
struct FormationRequest {
    std::uint64_t id;
    int size;
    int index;
};

// A PE's answer to a proposal.
struct FormationVote {
    SlotClaim claim;
    bool mapped;       // this PE maps all members
    TeamSlotSet free;  // after the claim

    void add_to(TeamMessage& message) const;
    static FormationVote parse(const TeamMessage& message);
};

// This PE's messages in one formation, for one thread. The id must be expected in the mailbox.
class FormationMessages {
public:
    FormationMessages(const TeamResources& resources, TeamMailbox& mailbox, std::uint64_t id)
        : resources_(resources), mailbox_(mailbox), id_(id) {}

    [[nodiscard]] const TeamResources& resources() const { return resources_; }
    [[nodiscard]] int leader() const { return leader_of_team(id_); }
    [[nodiscard]] TeamMessage make(FormationMessage kind) const;
    [[nodiscard]] TeamMessage make_hello(const FormationRequest& request, const TeamSlotSet& free) const;
    [[nodiscard]] TeamMessage make_refusal(const FormationRefusal& refusal) const;
    Status send(int pe, const TeamMessage& message, const std::function<bool()>& cancelled = {}) {
        return mailbox_.send(pe, message, cancelled);
    }
    // Returns the next message of the id, if there is one.
    std::optional<TeamMessage> poll() { return mailbox_.take(id_); }
    // Waits for a message; `what.needs` may grow meanwhile.
    Result<TeamMessage> receive(const WaitFor& what, std::optional<std::uint32_t> number = {},
                                WaitFailure* failure = nullptr);

private:
    const TeamResources& resources_;
    TeamMailbox& mailbox_;
    std::uint64_t id_;
};

// The slot of a proposal, which this PE holds until the team begins or it is released.
class ProposedSlot {
public:
    ProposedSlot(const TeamResources& resources, TeamSlots& slots) : resources_(resources), slots_(slots) {}

    // Claims and prepares a slot for these members.
    FormationVote claim(int slot, const PeRange& members);
    // Releases the slot, if this PE has claimed it.
    void release();
    [[nodiscard]] int slot() const { return slot_; }
    [[nodiscard]] TeamSlotSet free() { return slots_.free(); }

private:
    const TeamResources& resources_;
    TeamSlots& slots_;
    int slot_ = -1;
    bool claimed_ = false;
};

}  // namespace npushmem
