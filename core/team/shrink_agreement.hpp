// SPDX-License-Identifier: BSD-3-Clause
// The agreement of a team's living members on the members that have failed, and on a slot for a team of the others.
//
// Each member publishes a record that only it writes and all members read. A member knows a set of failed members,
// which only grows.
//
//     proposed   these have failed, and these slots are free here
//                -> all members outside the set have published the same set: claims the first slot that all have free
//     claimed    with this set, the slot is claimed here, or is not
//                -> all members outside the set have claimed with the same set: the result is the same on all of them
//     decided    the result; the record does not change any more
//
// A member that learns of a further failure, by itself or from a record, proposes the larger set. A member that reads a
// decision adopts it. Without failures this takes two rounds. A member whose call fails, and one that reads that it
// counts among the failed, marks its record: for the others it has failed then.
//
// The living decide alike. Let one member decide by the sets A and another by B. A living member is in neither and has
// published both, so one contains the other; let B be larger than A. The member that decided by B has read B from every
// member outside B. A member that has published B is undecided and reads only members outside B, so none of those can
// be the first to decide by A afterwards. Nobody waits for ever: a member outside the set either publishes, or has
// decided, or is found dead.
//
// This is flooding consensus with a perfect failure detector (Cachin, Guerraoui, Rodrigues: Introduction to Reliable
// and Secure Distributed Programming, 2nd ed., 5.1 and 5.2; the detector: Chandra, Toueg, JACM 43(2), 1996), on the set
// of failures itself and over registers that are read instead of messages. ULFM's agreement has the same guarantee
// (Herault et al., SC 2015). tests/unit/core/team/shrink_explorer.hpp runs this class through every interleaving.
#pragma once

#include <cstdint>
#include <vector>

#include "core/team/team_split.hpp"

namespace npushmem {

// A set of members of a team, by index.
class MemberSet {
public:
    MemberSet() = default;
    explicit MemberSet(int size) : words_((static_cast<std::size_t>(size) + 63) / 64) {}

    [[nodiscard]] bool has(int member) const { return (words_[word_of(member)] & bit_of(member)) != 0; }
    void add(int member) { words_[word_of(member)] |= bit_of(member); }
    // Adds the members of a set of the same team. Returns whether some were new.
    bool add_all(const MemberSet& others);
    void clear() { words_.assign(words_.size(), 0); }

    [[nodiscard]] std::vector<std::uint64_t>& words() { return words_; }
    [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
    bool operator==(const MemberSet&) const = default;

private:
    static std::size_t word_of(int member) { return static_cast<std::size_t>(member) / 64; }
    static std::uint64_t bit_of(int member) { return std::uint64_t{1} << (static_cast<unsigned>(member) % 64); }

    std::vector<std::uint64_t> words_;
};

// What a member publishes. Plain values; a reader sees one record or another, never a mixture.
struct ShrinkRecord {
    enum class Phase : std::uint32_t { none, proposed, claimed, decided };

    std::uint64_t call = 0;  // the number of the team's shrink, from 1 on
    Phase phase = Phase::none;
    bool has_left = false;  // the member continues no call that is not decided, and begins no further one
    MemberSet failed;
    TeamSlotSet free{};                    // with this set
    int slot = -1;                         // once claimed; -1: the members have no free slot in common
    SlotClaim claim = SlotClaim::claimed;  // once claimed: this member's; decided: the worst of all
    bool mapped = true;                    // once claimed: this member maps the others; decided: each maps each

    explicit ShrinkRecord(int size) : failed(size) {}
    bool operator==(const ShrinkRecord&) const = default;
};

// This member's slots, for the agreement.
class ShrinkSlots {
public:
    ShrinkSlots() = default;
    ShrinkSlots(const ShrinkSlots&) = delete;
    ShrinkSlots& operator=(const ShrinkSlots&) = delete;
    virtual ~ShrinkSlots() = default;

    // Returns the free slots, without those that claim() was called with.
    virtual TeamSlotSet free() = 0;
    struct Claim {
        SlotClaim claim;
        bool mapped;  // this PE maps all members outside `failed`
    };
    // Claims and prepares a slot. It stays claimed, because a member may still decide for it.
    virtual Claim claim(int slot, const MemberSet& failed) = 0;
};

// One member's part of one call: events in, a record out. It calls nothing but ShrinkSlots, and only from advance().
class ShrinkAgreement {
public:
    ShrinkAgreement(int size, int own, std::uint64_t call);

    // The record to publish, after advance() has returned true.
    [[nodiscard]] const ShrinkRecord& record() const { return record_; }
    // Returns whether the agreement needs this member's record, or the news of its death.
    [[nodiscard]] bool awaits(int member) const;
    // The member is dead. Its record must not be read any more.
    void learn_failed(int member);
    // A member that the agreement awaits has published this record.
    void learn(int member, const ShrinkRecord& theirs);
    // Takes the next step if the own record can change. Publish it then, before the next call of any function here.
    bool advance(ShrinkSlots& slots);

    // The record has the result.
    [[nodiscard]] bool has_decided() const { return record_.phase == ShrinkRecord::Phase::decided; }
    // Another member has counted this one among the failed. This one must mark its records (has_left), because others
    // may not know yet.
    [[nodiscard]] bool is_excluded() const { return is_excluded_; }

private:
    friend class ShrinkExplorer;  // tests/unit/core/team: reads the state

    [[nodiscard]] bool all_agree() const;
    void start_again();
    void adopt(const ShrinkRecord& theirs);
    void agree(int member, const ShrinkRecord& theirs);
    void claim(ShrinkSlots& slots);

    int size_;
    int own_;
    ShrinkRecord record_;
    bool must_propose_ = true;  // with a set that is not published yet
    bool must_publish_ = false;
    bool is_excluded_ = false;
    // From the members whose records have the own set and at least the own phase, and this one:
    MemberSet agreed_;
    TeamSlotSet common_{};
    SlotClaim worst_ = SlotClaim::claimed;
    bool all_mapped_ = true;
};

}  // namespace npushmem
