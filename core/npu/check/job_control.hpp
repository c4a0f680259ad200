// One schedule of a checked job: who goes next, and what is put off.
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
    [[nodiscard]] std::uint64_t version() const override { return domain_->version.changes() + looks_; }

private:
    // Whether to set aside what is at this place.
    [[nodiscard]] bool defer();
    [[nodiscard]] bool draw(unsigned one_in) { return random_() % one_in == 0; }
    // Counts the polls that find nothing new: `chosen` runs next.
    void count_looks(const detail::CoreContext& chosen);
    // Polling cores may poll again: the memory may have changed unseen, or a loop may end by itself.
    [[nodiscard]] bool look_again();

    Schedule::Kind kind_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> deferred_;
    std::size_t next_deferred_ = 0;
    std::uint64_t places_ = 0;
    detail::CoreContext* running_ = nullptr;
    Domain* domain_ = nullptr;
    bool watched_ = true;
    // How often polling cores were allowed to poll again, how often in a row while no core did anything else, the
    // number of these polls, and whether a core has run since.
    std::uint64_t looks_ = 0;
    int looks_in_a_row_ = 0;
    int polls_in_a_row_ = 0;
    bool turned_ = false;
    std::uint64_t looked_at_ = 0;  // the state of the memory then
    bool long_turn_ = false;
    Ends ends_;
};

}  // namespace npushmem::npu::check
