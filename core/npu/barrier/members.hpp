// What the barriers among PEs share: who takes part, how a generation begins, how a peer's word is waited for.
#pragma once

#include <span>

#include "npushmem/npu/barrier.hpp"

namespace npushmem::npu::barrier {

using Where = std::source_location;

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

private:
    TeamView team_;
    const int* list_ = nullptr;
};

// One barrier, on one core.
class Round {
public:
    // Reads the generation, and meets the other cores: from here on nobody of this PE is outside. Throws
    // Code::argument when this PE is no member.
    Round(Core& core, const Members& members, BarrierState* state, const char* variant, int radix, const Where& where);

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] std::uint64_t generation() const { return call_.generation; }
    // The line that the member `index` writes and this PE reads in this barrier, or the other way round; two barriers
    // in a row use different ones, because an older write may land after a newer one that no fence holds back.
    [[nodiscard]] std::uint64_t* slot(std::size_t number) const;

    // Tells the member `index`, in its slot.
    void signal(int index, std::size_t slot) const;
    // Until the word shows that the member `index` has entered.
    void await(const std::uint64_t* word, int index) const;
    // The same for that member's copy of the word.
    void await_there(const std::uint64_t* word, int index) const;
    // Cores meet, and then nobody is still in. `end` when this was the last meeting: the generation is complete.
    void meet() const { core_.core_barrier(where_); }
    // By one core, before the last meeting.
    void complete() const;

private:
    void note(std::uint64_t seen, int pe) const;

    Core& core_;
    const Members& members_;
    BarrierState* state_;
    const Where& where_;
    int index_;
    BarrierCall call_;
};

}  // namespace npushmem::npu::barrier
