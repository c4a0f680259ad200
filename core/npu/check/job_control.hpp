// One schedule of a checked job: who goes next, and what is put off.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "core/npu/check/domain.hpp"
#include "core/npu/scheduler.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::npu::check {

class JobControl : public Control, public detail::Scheduler {
public:
    // `deferred`: ascending numbers of the places where something is set aside (explore only).
    JobControl(const Schedule& schedule, std::vector<std::uint64_t> deferred)
        : kind_(schedule.kind), random_(schedule.seed), deferred_(std::move(deferred)) {}

    // Before the first core runs. `watched`: the domain is told of every change of the memory. `deadlocked` fails the
    // launches.
    void attach(Domain& domain, bool watched, std::function<void()> deadlocked);
    // Places seen so far.
    [[nodiscard]] std::uint64_t places() const { return places_; }

    bool run_command() override;
    bool deliver_signal() override;
    bool give_way() override;

    detail::CoreContext& choose(const std::vector<detail::CoreContext*>& able) override;
    void unblock() override;
    [[nodiscard]] std::uint64_t version() const override { return domain_->version() + looks_; }

private:
    // Whether to set aside what is at this place.
    [[nodiscard]] bool defer();
    [[nodiscard]] bool draw(unsigned one_in) { return random_() % one_in == 0; }
    // Yields again and again, and nothing changes: others come first, even those that were set aside.
    [[nodiscard]] bool in_vain(const detail::CoreContext& core) const;
    // Whether what is polled may have changed unseen.
    [[nodiscard]] bool look_again();

    Schedule::Kind kind_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> deferred_;
    std::size_t next_deferred_ = 0;
    std::uint64_t places_ = 0;
    detail::CoreContext* running_ = nullptr;
    Domain* domain_ = nullptr;
    bool watched_ = true;
    // Of memory that is not watched: how often those who poll it were told to look again, how often in a row while
    // nobody did anything else, and whether somebody has run since.
    std::uint64_t looks_ = 0;
    int looks_in_a_row_ = 0;
    bool turned_ = false;
    std::function<void()> deadlocked_;
};

}  // namespace npushmem::npu::check
