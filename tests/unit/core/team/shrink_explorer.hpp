// SPDX-License-Identifier: BSD-3-Clause
// Runs ShrinkAgreement of a few members through every interleaving of their steps, with crashes before every step.
//
// The steps of a member are: enter the call (its first record), read another member's record, find another member
// dead, change and publish its own record, leave. Reads are invisible to the others, so a crash between a read and the
// next record equals a crash before the read. The record of a dead member may be read until its death is found, or not:
// both are explored, which covers memory that stays mapped and memory that is lost.
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
        bool leaves = false;  // members that have returned may end without a crash
        // What a member's claim of a slot returns.
        std::function<ShrinkSlots::Claim(int member, int slot)> claim = [](int, int) {
            return ShrinkSlots::Claim{SlotClaim::claimed, true};
        };
        int slots = 6;
        bool numbered = false;  // members are not alike, because of `claim`
        // Planted faults.
        bool detector_errs = false;       // may report a living member dead
        bool decisions_are_lost = false;  // no member sees that another has decided
        bool decides_early = false;       // readers take a proposal for a claim
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
        explicit Member(int size, int own) : agreement(size, own, 1), published(size) {}

        ShrinkAgreement agreement;
        ShrinkRecord published;
        TeamSlotSet claimed{};
        bool entered = false;
        bool crashed = false;
        std::uint32_t absent_at_crash = 0;  // the living members that had not entered then, one bit each
    };
    using State = std::vector<Member>;
    class Slots;

    void add_successors(const State& state);
    void add_steps_of(const State& state, int member);
    void add_reading(const State& state, int reader, int other);
    void add(State next);
    bool publish(State& state, int member) const;
    [[nodiscard]] ShrinkRecord seen(const ShrinkRecord& record) const;
    void check(const State& state);
    void check_decision(const State& state, int member);
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
