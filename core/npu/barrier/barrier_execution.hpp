// SPDX-License-Identifier: BSD-3-Clause
// Shared code of the barriers among PEs: membership, the start of a generation, signals and waits.
#pragma once

#include <span>

#include "npushmem/npu/barrier.hpp"

namespace npushmem::npu::barrier {

using Where = SourceLocation;

// A team, or a list of PEs.
class Members {
public:
    explicit Members(const TeamView& team) : team_(team) {}
    explicit Members(std::span<const int> list) : team_{0, 0, static_cast<int>(list.size())}, list_(list.data()) {}

    [[nodiscard]] int size() const { return team_.size; }
    [[nodiscard]] int pe(int index) const { return list_ != nullptr ? list_[index] : team_.pe(index); }
    // -1 when `pe` is not a member.
    [[nodiscard]] int index_of(int pe) const;
    [[nodiscard]] const TeamView& team() const { return team_; }
    [[nodiscard]] PeGroup group() const { return {team_.start, team_.stride, team_.size, list_}; }

private:
    TeamView team_;
    const int* list_ = nullptr;
};

// One barrier call on one core. Inline: after a switch between cores a function return costs more than the function
// itself (see Runner).
class BarrierExecution {
public:
    // Reads the generation and passes a core barrier: afterwards every core of this PE has entered. Throws
    // Code::argument when this PE is not a member.
    BarrierExecution(Core& core, const Members& members, BarrierState* state, const char* variant, int radix,
                     const Where& where)
        : core_(core),
          members_(members),
          state_(state),
          where_(where),
          index_(members.index_of(core.my_pe())),
          call_{variant, members.team().start, members.team().stride, members.size(), radix, state, 0} {
        if (index_ < 0) reject(core.my_pe());
        // Must precede the core barrier below, because one core writes the generation after it.
        call_.generation = core.signal_fetch(&state->generation.word, where) + 1;
        if (core.hooks() != nullptr) [[unlikely]]
            core.hooks()->barrier_begin(call_, where);
        sync_cores();
    }

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] std::uint64_t generation() const { return call_.generation; }
    // The word through which one member signals another in this barrier. Two consecutive barriers use different words,
    // because an older write may land after a newer one if no fence orders them.
    [[nodiscard]] std::uint64_t* slot(std::size_t number) const {
        return &state_->slots[call_.generation % 2 * (barrier_slots / 2) + number].word;
    }

    // Signals the member `index` through its slot.
    void signal(int index, std::size_t number) const {
        core_.signal_set_on(slot(number), call_.generation, members_.pe(index), where_);
    }
    // Waits until the word shows that the member `index` has entered. That member may miss a signal because some other
    // member is dead, so the wait needs all members.
    void await(const std::uint64_t* word, int index) const {
        const int pe = members_.pe(index);
        observe(core_.signal_wait_until(word, Compare::greater_equal, call_.generation, {pe, members_.group()}, where_),
                pe);
    }
    // Like await, on that member's copy of the word.
    void await_remote(const std::uint64_t* word, int index) const {
        const int pe = members_.pe(index);
        observe(
            core_.signal_wait_until_on(word, Compare::greater_equal, call_.generation, {pe, members_.group()}, where_),
            pe);
    }
    // A barrier among this PE's cores.
    void sync_cores() const { core_.core_barrier(where_); }
    // Called by one core, before the last core barrier.
    void complete() const { core_.signal_set(&state_->generation.word, call_.generation, where_); }

private:
    [[noreturn]] void reject(int pe) const;
    void observe(std::uint64_t seen, int pe) const {
        if (core_.hooks() != nullptr) [[unlikely]]
            core_.hooks()->barrier_observed(seen, call_, pe, where_);
    }

    Core& core_;
    const Members& members_;
    BarrierState* state_;
    const Where& where_;
    int index_;
    BarrierDescriptor call_;
};

}  // namespace npushmem::npu::barrier
