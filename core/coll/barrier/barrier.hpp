// SPDX-License-Identifier: BSD-3-Clause
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
    // `members` are world PEs by team index; `index` is the caller's. `default_plan` is the plan of run() without
    // argument. `nodes` is the members' distribution over nodes, null for one node; it must outlive the barrier.
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

    // Returns ok when every member has called it. A member's earlier writes to mapped memory are then visible to all.
    // The caller completes transfers of transports before (quiet). After a failure the members may disagree on the
    // number of calls, so every later call fails with the same code.
    Code run() { return run(default_plan_); }

    // All members pass the same plan, one that check_members accepts.
    Code run(const Plan& plan) {
        if (failed_ != Code::ok) [[unlikely]]
            return failed_;
        if (members_.count == 1) return Code::ok;
        // The count is written only after the last wait: a failed call does not count.
        const auto algorithm = static_cast<std::size_t>(plan.id);
        std::uint64_t& calls = calls_[algorithm];
        const BarrierCall call{members_.count, index_, first_slot_[algorithm], calls + 1, plan.radix, nodes_};
        const Code code = Algorithms::run(plan.id, fabric_, call);
        if (code != Code::ok) [[unlikely]]
            return fail(plan.id, code);
        calls = call.generation;
        return Code::ok;
    }

    // Describes the failure of run().
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
    AlgorithmId last_;  // the algorithm of the failed call
    Code failed_ = Code::ok;
    std::array<std::uint64_t, Algorithms::count> calls_{};  // completed, by algorithm
    std::array<int, Algorithms::count> first_slot_{};
};

}  // namespace npushmem::barrier
