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

    // Before the first core runs. `deadlocked` fails the launches.
    void attach(Domain& domain, std::function<void()> deadlocked);
    // Places seen so far.
    [[nodiscard]] std::uint64_t places() const { return places_; }

    bool run_command() override;
    bool deliver_signal() override;
    bool give_way() override;

    detail::CoreContext& choose(const std::vector<detail::CoreContext*>& able) override;
    void unblock() override;
    [[nodiscard]] std::uint64_t version() const override { return domain_->version(); }

private:
    // Whether to set aside what is at this place.
    [[nodiscard]] bool defer();
    [[nodiscard]] bool draw(unsigned one_in) { return random_() % one_in == 0; }

    Schedule::Kind kind_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> deferred_;
    std::size_t next_deferred_ = 0;
    std::uint64_t places_ = 0;
    bool set_aside_ = false;  // the core that runs, when it next gives way
    detail::CoreContext* running_ = nullptr;
    Domain* domain_ = nullptr;
    std::function<void()> deadlocked_;
};

}  // namespace npushmem::npu::check
