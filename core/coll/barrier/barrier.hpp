// One member's handle of a team's barrier: counts the calls and runs the schedule over the fabric.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/coll/barrier/algorithms.hpp"
#include "core/coll/barrier/schedule.hpp"
#include "core/coll/barrier/signal_fabric.hpp"

namespace npushmem::barrier {

// Collective: every member makes the same calls in the same order. One thread at a time. The state behind the fabric
// must be zero at every member before the first member calls.
template <Fabric F>
class Barrier {
public:
    // `members`: world PEs by team index; `index`: the caller's. `default_plan`: the plan of run() without argument.
    // `nodes`: how the members are spread, null for one node; it must outlive the barrier.
    Barrier(F fabric, PeRange members, int index, Plan default_plan, const NodeLayout* nodes = nullptr)
        : fabric_(std::move(fabric)),
          members_(members),
          index_(index),
          nodes_(nodes),
          default_plan_(default_plan),
          last_(default_plan.id) {
        for (std::size_t i = 0; i < Algorithms::count; ++i) {
            first_slot_[i] = Algorithms::first_slot(AlgorithmId{i}, members.count);
        }
    }

    // Returns ok when every member has come. What a member wrote to mapped memory before it came is visible to all
    // after; completing transfers that a transport still carries is the caller's business (quiet first).
    // After a failure the members no longer agree on the count, so every later call fails with the same code.
    Code run() { return run(default_plan_); }

    // All members with the same plan, one that check_members finds right.
    Code run(const Plan& plan) {
        if (failed_ != Code::ok) [[unlikely]]
            return failed_;
        if (members_.count == 1) return Code::ok;
        // The count is read here and written only after the last wait: a call that fails has not happened.
        const auto algorithm = static_cast<std::size_t>(plan.id);
        std::uint64_t& calls = calls_[algorithm];
        const BarrierCall call{members_.count, index_, first_slot_[algorithm], calls + 1, plan.radix, nodes_};
        const Code code = Algorithms::run(plan.id, fabric_, call);
        if (code != Code::ok) [[unlikely]]
            return fail(plan.id, code);
        calls = call.generation;
        return Code::ok;
    }

    // The sentence about the failure, when run() did not return ok.
    [[nodiscard]] std::string failure_text(std::string_view team) const {
        return describe(BarrierIdentity{team, Algorithms::info(last_).name, members_, index_}, fabric_.failure());
    }
    [[nodiscard]] FabricFailure failure() const { return fabric_.failure(); }
    [[nodiscard]] const Plan& default_plan() const { return default_plan_; }

private:
    Code fail(AlgorithmId algorithm, Code code) {
        last_ = algorithm;
        failed_ = code;
        return code;
    }

    F fabric_;
    PeRange members_;
    int index_;
    const NodeLayout* nodes_;
    Plan default_plan_;
    AlgorithmId last_;  // whose call failed
    Code failed_ = Code::ok;
    std::array<std::uint64_t, Algorithms::count> calls_{};  // completed, by algorithm
    std::array<int, Algorithms::count> first_slot_{};
};

}  // namespace npushmem::barrier
