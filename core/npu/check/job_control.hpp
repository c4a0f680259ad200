// SPDX-License-Identifier: BSD-3-Clause
// One schedule of a checked job: which core runs next, and which commands and cores are deferred.
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
    // `deferred`: ascending numbers of the places where something is set aside (explore only).
    JobControl(const Schedule& schedule, std::vector<std::uint64_t> deferred)
        : kind_(schedule.kind), random_(schedule.seed), deferred_(std::move(deferred)) {}

    struct Ends {
        std::function<void()> deadlocked;
        std::function<void()> on_deadline;
    };
    // Before the first core runs. `watched`: the domain learns every change of the memory. `ends` fail the launches.
    void attach(Domain& domain, bool watched, Ends ends);
    // Places seen so far.
    [[nodiscard]] std::uint64_t places() const { return places_; }

    bool run_command() override;
    bool deliver_signal() override;
    bool switch_core() override;
    void long_turn() override { long_turn_ = true; }

    detail::CoreContext& choose(const std::vector<detail::CoreContext*>& able) override;
    void unblock() override;
    bool on_deadline() override;
    [[nodiscard]] std::uint64_t version() const override { return domain_->version.changes() + poll_rounds_; }

private:
    // Whether the schedule defers the command, signal or core at this place.
    [[nodiscard]] bool defer();
    [[nodiscard]] bool draw(unsigned one_in) { return random_() % one_in == 0; }
    // Counts the polls that find nothing new: `chosen` runs next.
    void count_idle_polls(const detail::CoreContext& chosen);
    // Lets polling cores poll again, because the memory may have changed unseen, or a loop may end by itself. Returns
    // false when they have polled often enough, or when no core has run since the last round.
    [[nodiscard]] bool begin_poll_round();

    Schedule::Kind kind_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> deferred_;
    std::size_t next_deferred_ = 0;
    std::uint64_t places_ = 0;
    detail::CoreContext* running_ = nullptr;
    Domain* domain_ = nullptr;
    bool watched_ = true;
    // A round lets every polling core poll again. The number of rounds, of rounds in a row in which no core did
    // anything else, of the polls in these, and whether a core has run since the last round began.
    std::uint64_t poll_rounds_ = 0;
    int idle_rounds_ = 0;
    int idle_polls_ = 0;
    bool ran_since_round_ = false;
    std::uint64_t last_change_ = 0;  // the state of the memory then
    bool long_turn_ = false;
    Ends ends_;
};

}  // namespace npushmem::npu::check
