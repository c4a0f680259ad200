// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "npushmem/npu/barrier.hpp"

namespace npushmem::npu::check {
namespace {

bool same_call(const BarrierDescriptor& a, const BarrierDescriptor& b) {
    return std::strcmp(a.variant, b.variant) == 0 && a.start == b.start && a.stride == b.stride && a.size == b.size &&
           a.radix == b.radix;
}

// A stride of 0 stands for a list that is not known here.
bool takes_part(const BarrierDescriptor& call, int pe) {
    return call.stride == 0 || TeamView{call.start, call.stride, call.size}.index_of(pe) >= 0;
}

std::string describe(const BarrierDescriptor& call, int cores) {
    return fmt::format("{} of {} PEs from {} by {}, radix {}, on {} cores", call.variant, call.size, call.start,
                       call.stride, call.radix, cores);
}

}  // namespace

Clock Domain::passed_on(Address word, Clock clock, int from_pe) const {
    const int target = names.pe_of(word);
    if (target >= 0) copies.pass_fences(clock, from_pe, target);
    return clock;
}

bool CoreBarrier::arrive(const CheckedCore& core, const FindingSide& here, const Clock& clock, FindingLog& findings) {
    if (arrived_ == 0) {
        first_ = here;
        gathering_ = {};
    }
    if (ended_ > 0) {
        findings.report(
            Hazard::core_barrier, here, FindingSide{}, "",
            fmt::format("core_barrier was reached after {} of {} cores ended the kernel", ended_, core.count));
    }
    gathering_.join(clock);
    if (++arrived_ < core.count) return false;
    arrived_ = 0;
    passed_ = gathering_;
    passed_steps_ = std::exchange(gathering_steps_, {});
    return true;
}

void CoreBarrier::report_waiting(const CheckedCore& core, FindingLog& findings) const {
    if (arrived_ == 0) return;
    findings.report(Hazard::core_barrier, first_, FindingSide{}, "",
                    fmt::format("core_barrier was reached by {} of {} cores, and core {} ended the kernel without",
                                arrived_, core.count, core.index));
}

void TeamCalls::compare(const BarrierDescriptor& call, const FindingSide& here, int cores) {
    // The state lies at the same offset of the same allocation on every PE: its name without the PE.
    std::string state = names_.name_of(number_of(call.state));
    state.resize(std::min(state.size(), state.rfind(" of PE ")));
    std::vector<Call>& calls = calls_[{state, call.generation}];
    const Call mine{call, here, cores};
    for (const Call& other : calls) {
        if (same_call(call, other.call) && cores == other.cores) return;
        compare(mine, other, state);
    }
    if (peers_ != nullptr)
        peers_->barrier_called(call, cores, here, [&](const auto& descriptor, int of_cores, const FindingSide& side) {
            compare(mine, {descriptor, side, of_cores}, state);
        });
    calls.push_back(mine);
}

void TeamCalls::compare(const Call& mine, const Call& other, const std::string& state) {
    // Disjoint teams may use the same state.
    if (!takes_part(mine.call, other.side.pe) && !takes_part(other.call, mine.side.pe)) return;
    if (same_call(mine.call, other.call) && mine.cores == other.cores) return;
    findings_.report(Hazard::team_mismatch, mine.side, other.side, state,
                     fmt::format("{} here, {} on PE {}", describe(mine.call, mine.cores),
                                 describe(other.call, other.cores), other.side.pe));
}

}  // namespace npushmem::npu::check
