// SPDX-License-Identifier: BSD-3-Clause
// A launch of one PE whose steps the job's scheduler grants; see step_turns.hpp.
#pragma once

#include <functional>
#include <vector>

#include "core/npu/check/step_turns.hpp"
#include "core/npu/check/stepped_control.hpp"

namespace npushmem::npu::check {

// Where an address lies in the job: the same number in every process and run for the same symmetric memory, 0 for other
// memory.
using PlaceInJob = std::function<std::uint64_t(std::uintptr_t address)>;

class SharedStepsControl final : public SteppedControl {
public:
    SharedStepsControl(const StepSharing& sharing, int pe, PlaceInJob place_of);

    // Behind all steps of the launch: the other kernels continue without it. The last call.
    void end_launch();
    // A finding, or a failure of the launch without one (Hazard::none): the exploration ends with this run.
    void report_failure(Hazard hazard);

protected:
    [[nodiscard]] ThreadId decide(const std::vector<ThreadId>& enabled) override;
    [[nodiscard]] bool other_processes() const override { return true; }
    void translate(explore::Step& step) const override;

private:
    // Keeps the step that ran for the next request.
    class StepKeeper final : public explore::Decisions {
    public:
        explicit StepKeeper(StepTurns::Slot& slot) : slot_(slot) {}
        ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId /*last*/) override { return enabled.front(); }
        void executed(explore::Step step) override { slot_.step.take(step); }

    private:
        StepTurns::Slot& slot_;
    };

    [[nodiscard]] StepTurns::Slot& slot() const { return sharing_.turns().slots[static_cast<std::size_t>(pe_)]; }
    [[nodiscard]] std::uint64_t place(std::uintptr_t address) const;
    // Asks, and waits for the answer.
    void ask();
    // Returns whether the number of some PE has changed.
    bool publish_host_barriers();

    const StepSharing& sharing_;
    int pe_;
    PlaceInJob place_of_;
    StepKeeper keeper_;
};

}  // namespace npushmem::npu::check
