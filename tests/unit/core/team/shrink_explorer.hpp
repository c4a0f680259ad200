// SPDX-License-Identifier: BSD-3-Clause
// Runs ShrinkAgreement of a few members through every interleaving of their steps, with crashes before every step.
//
// The steps of a member are: enter a call (its first record), read another member's record, find another member dead,
// change and publish its own record, fail without a crash, begin the next call, leave. Reads are invisible to the
// others, so a crash between a read and the next record equals a crash before the read. The record of a dead member may
// be read until its death is found, or not: both are explored, which covers memory that stays mapped and memory that is
// lost. As in ShrinkRecords, a member has two records, which its calls use in turn.
//
// Members are alike, so states that differ only in their numbers count once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/team/shrink_agreement.hpp"

namespace npushmem {

class ShrinkExplorer {
public:
    struct Config {
        int members = 2;
        int max_crashes = 0;
        int max_failures = 0;  // calls that fail without a crash
        int calls = 1;         // of each member
        bool leaves = false;   // members that have returned may end without a crash
        // How often a member finds a living one dead, and keeps to it.
        int max_errors = 0;
        bool may_exclude = false;  // such an error is not a fault of the agreement: only its end is checked
        // What a member's claim of a slot returns.
        std::function<ShrinkSlots::Claim(int member, int slot)> claim = [](int, int) {
            return ShrinkSlots::Claim{SlotClaim::claimed, true};
        };
        int slots = 6;
        bool numbered = false;  // members are not alike, because of `claim`
        // Planted faults.
        bool decisions_are_lost = false;  // no member sees that another has decided
        bool decides_early = false;       // readers take a proposal for a claim
        bool sets_are_ignored = false;    // readers take every record for one with their own set, and undecided
    };
    struct Result {
        std::string fault;  // "" when none was found
        std::size_t states = 0;
        std::size_t ends = 0;  // states in which all living members have returned
    };

    explicit ShrinkExplorer(Config config) : config_(std::move(config)) {}
    Result run();

private:
    struct Member {
        Member(int size, int own) : agreement(size, own, 1), published{ShrinkRecord(size), ShrinkRecord(size)} {}

        [[nodiscard]] ShrinkRecord& record() { return published[static_cast<std::size_t>(call % 2)]; }
        [[nodiscard]] const ShrinkRecord& record() const { return published[static_cast<std::size_t>(call % 2)]; }
        [[nodiscard]] bool has_entered() const { return record().call == static_cast<std::uint64_t>(call); }
        // It lives, and its calls have not failed.
        [[nodiscard]] bool takes_part() const { return !crashed && !failed; }
        void mark_records();

        ShrinkAgreement agreement;  // of the call in progress
        std::vector<ShrinkRecord> published;
        TeamSlotSet claimed{};
        int call = 1;
        bool crashed = false;
        bool failed = false;                // a call of it has failed
        std::uint32_t suspected = 0;        // the members that it has found dead in error, one bit each
        std::uint32_t absent_at_crash = 0;  // the living members that had not entered then, one bit each
    };
    struct State {
        std::vector<Member> members;
        int failures = 0;
        int errors = 0;
    };
    class Slots;

    void add_successors(const State& state);
    void add_crashes(const State& state);
    void add_steps_of(const State& state, std::size_t member);
    void add_readings(const State& state, std::size_t reader, int other);
    void add_returns(const State& state, std::size_t member);
    void add(State next);
    bool publish(Member& own, int member) const;
    [[nodiscard]] ShrinkRecord seen(const ShrinkRecord& record, const Member& reader) const;
    void check(const State& state);
    void check_decision(const State& state, std::size_t member);
    void check_end(const State& state);
    [[nodiscard]] std::string key(const State& state) const;
    [[nodiscard]] std::string key(const State& state, const std::vector<int>& order) const;

    Config config_;
    Result result_;
    std::vector<State> open_;
    std::unordered_set<std::string> known_;
    std::string from_;        // the state whose steps are taken
    bool has_moved_ = false;  // a step has led to another state
};

}  // namespace npushmem
