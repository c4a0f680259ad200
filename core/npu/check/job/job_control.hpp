// SPDX-License-Identifier: BSD-3-Clause
// One schedule of a checked job: which core runs next, and when commands and signals happen.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "core/npu/check/domain.hpp"
#include "core/npu/runner.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::npu::check {

class JobControl : public Control, public detail::Scheduler {
public:
    explicit JobControl(const Schedule& schedule) : kind_(schedule.kind), random_(schedule.seed) {}

    // All but the first may be empty.
    struct Ends {
        std::function<void()> deadlocked;
        std::function<void()> on_deadline;
        std::function<void(std::uint64_t steps)> on_step_limit;
        // The same in a run that only repeats others.
        std::function<void()> on_abandon;
    };
    // Before the first core runs. `watched`: the domain learns every change of the memory. `ends` fail the launches.
    void attach(Domain& domain, bool watched, Ends ends);

    bool run_command() override;
    bool deliver_signal() override;
    bool switch_core() override;
    [[nodiscard]] bool delays_others() const override { return kind_ == Schedule::Kind::lazy; }

    detail::CoreContext* choose(const std::vector<detail::CoreContext*>& able) override;
    detail::CoreContext* unblock() override;
    bool on_deadline() override;
    [[nodiscard]] std::uint64_t version(const detail::CoreContext&) const override {
        return domain_->version.changes() + poll_rounds_;
    }

protected:
    [[nodiscard]] Domain& domain() { return *domain_; }
    [[nodiscard]] const Ends& ends() const { return ends_; }
    [[nodiscard]] std::uint64_t poll_rounds() const { return poll_rounds_; }
    // Counts the polls that find nothing new: `chosen` runs next.
    void count_idle_polls(const detail::CoreContext& chosen);
    // Lets polling cores poll again, because the memory may have changed unseen, or a loop may end by itself. Returns
    // false when they have polled often enough, or when no core has run since the last round.
    [[nodiscard]] virtual bool begin_poll_round();
    void count_poll_round();
    // The memory has changed: cores that poll may find something.
    void end_idle_rounds() { idle_rounds_ = idle_polls_ = 0; }

private:
    [[nodiscard]] bool draw(unsigned one_in) { return random_() % one_in == 0; }

    Schedule::Kind kind_;
    std::mt19937_64 random_;
    Domain* domain_ = nullptr;
    bool watched_ = true;
    // A round lets every polling core poll again. The number of rounds, of rounds in a row in which no core did
    // anything else, of the polls in these, and whether a core has run since the last round began.
    std::uint64_t poll_rounds_ = 0;
    int idle_rounds_ = 0;
    int idle_polls_ = 0;
    bool ran_since_round_ = false;
    std::uint64_t last_change_ = 0;  // the state of the memory then
    Ends ends_;
};

}  // namespace npushmem::npu::check
