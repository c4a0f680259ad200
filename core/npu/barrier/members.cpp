#include "core/npu/barrier/members.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::npu::barrier {
namespace {

[[noreturn]] void refuse(const Members& members, int pe, const Where& where) {
    const TeamView& team = members.team();
    throw KernelError(Code::argument,
                      fmt::format("barrier: PE {} is no member of the team of {} PEs from {} by {} ({}:{})", pe,
                                  team.size, team.start, team.stride, where.file_name(), where.line()));
}

}  // namespace

int Members::index_of(int pe) const {
    if (list_ == nullptr) return team_.index_of(pe);
    const int* found = std::find(list_, list_ + size(), pe);
    return found == list_ + size() ? -1 : static_cast<int>(found - list_);
}

Round::Round(Core& core, const Members& members, BarrierState* state, const char* variant, int radix,
             const Where& where)
    : core_(core),
      members_(members),
      state_(state),
      where_(where),
      index_(members.index_of(core.my_pe())),
      call_{variant, members.team().start, members.team().stride, members.size(), radix, state, 0} {
    if (index_ < 0) refuse(members, core.my_pe(), where);
    // Before any core can pass the meeting below, because one core writes the generation after it.
    call_.generation = core.signal_fetch(&state->generation.word, where) + 1;
    if (core.hooks() != nullptr) [[unlikely]]
        core.hooks()->barrier_begins(call_, where);
    meet();
}

std::uint64_t* Round::slot(std::size_t number) const {
    return &state_->slots[call_.generation % 2 * (barrier_slots / 2) + number].word;
}

void Round::signal(int index, std::size_t number) const {
    core_.signal_set_on(slot(number), call_.generation, members_.pe(index), where_);
}

void Round::await(const std::uint64_t* word, int index) const {
    const int pe = members_.pe(index);
    note(core_.signal_wait_until(word, Compare::greater_equal, call_.generation, pe, where_), pe);
}

void Round::await_there(const std::uint64_t* word, int index) const {
    const int pe = members_.pe(index);
    note(core_.signal_wait_until_on(word, Compare::greater_equal, call_.generation, pe, where_), pe);
}

void Round::note(std::uint64_t seen, int pe) const {
    if (core_.hooks() != nullptr) [[unlikely]]
        core_.hooks()->barrier_saw(seen, call_, pe, where_);
}

void Round::complete() const { core_.signal_set(&state_->generation.word, call_.generation, where_); }

}  // namespace npushmem::npu::barrier
