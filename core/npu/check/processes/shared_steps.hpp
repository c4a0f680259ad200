// SPDX-License-Identifier: BSD-3-Clause
// A launch of one PE whose steps the job's scheduler grants; see step_turns.hpp.
#pragma once

#include <functional>
#include <vector>

#include "core/npu/check/job/stepped_control.hpp"
#include "core/npu/check/processes/step_turns.hpp"

namespace npushmem::npu::check {

// Where an address lies in the job: the same number in every process and run for the same symmetric memory, 0 for other
// memory.
using PlaceInJob = std::function<std::uint64_t(std::uintptr_t address)>;

class SharedStepsControl final : public SteppedControl {
public:
    // `queued_at`: the host barriers that the host had entered when it queued the launch. `on_late_host` fails the
    // launch: the kernels wait, and this PE's host has neither launched one nor blocked.
    SharedStepsControl(const StepSharing& sharing, int pe, std::uint64_t queued_at, PlaceInJob place_of,
                       std::function<void(int pe)> on_late_host);

    // Behind all steps of the launch: the other kernels continue without it. The last call.
    void end_launch();
    // A finding, or a failure of the launch without one (Hazard::none): the exploration ends with this run.
    void report_failure(Hazard hazard);
    // The exploration continues.
    void report_hint(Hazard hazard);

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
    [[nodiscard]] StepTurns& turns() const { return sharing_.turns(); }
    // Asks, and waits for the answer.
    void ask();
    // Returns whether the host of some PE has entered a barrier, or begun or ended a wait.
    bool publish_hosts();

    const StepSharing& sharing_;
    int pe_;
    PlaceInJob place_of_;
    std::function<void(int pe)> on_late_host_;
    StepKeeper keeper_;
};

}  // namespace npushmem::npu::check
