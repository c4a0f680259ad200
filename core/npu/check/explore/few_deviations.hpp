// SPDX-License-Identifier: BSD-3-Clause
// Schedules that leave the default order in few places. In the default order a thread runs until it waits; then the
// next one runs.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/npu/check/explore/step.hpp"

namespace npushmem::npu::check::explore {

// At this step, counted from 0, this thread runs instead of the first one in the default order.
struct Deviation {
    std::uint64_t step;
    ThreadId thread;

    bool operator==(const Deviation&) const = default;
};

// "12=3,40=0"; "" for none.
[[nodiscard]] std::string text_of(const std::vector<Deviation>& deviations);
// Returns nothing for any other text, and when the steps do not ascend.
[[nodiscard]] std::optional<std::vector<Deviation>> parse_deviations(std::string_view text);

// One run whose steps the decisions choose. When it becomes redundant or is abandoned, it continues in the default
// order.
class DecidedRun {
public:
    explicit DecidedRun(Decisions& decisions) : decisions_(decisions) {}

    // Chooses the thread of the next step, see Decisions::choose. `waiting`: called when the run becomes redundant.
    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId preferred,
                    const std::function<std::vector<Waiting>()>& waiting);
    void executed(Step step) {
        if (decided_) decisions_.executed(std::move(step));
    }
    void abandon() { decided_ = false; }
    // The program has ended.
    void end();

    [[nodiscard]] bool decided() const { return decided_; }
    // Chosen so far.
    [[nodiscard]] std::uint64_t steps() const { return steps_; }
    // From the default order.
    [[nodiscard]] const std::vector<Deviation>& deviations() const { return deviations_; }

private:
    Decisions& decisions_;
    bool decided_ = true;
    std::uint64_t steps_ = 0;
    std::vector<Deviation> deviations_;
};

// Runs one schedule again. A deviation whose thread is not enabled at its step is left out.
class Replay final : public Decisions {
public:
    explicit Replay(std::vector<Deviation> deviations) : deviations_(std::move(deviations)) {}

    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId last) override;

private:
    std::vector<Deviation> deviations_;
    std::size_t next_ = 0;
    std::uint64_t step_ = 0;
};

// Runs one schedule that the seed determines.
class RandomChoice final : public Decisions {
public:
    explicit RandomChoice(std::uint64_t seed) : random_(seed) {}

    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId /*last*/) override {
        return enabled[random_() % enabled.size()];
    }

private:
    std::mt19937_64 random_;
};

// Runs every schedule with at most `max` deviations, without any reduction.
class FewDeviations final : public Decisions {
public:
    explicit FewDeviations(std::size_t max) : max_(max) {}

    // Begins the next run. Returns false when every schedule was run.
    bool next_run();
    ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId last) override;
    // Whether other threads were enabled than before in the same place: the program depends on more than the schedule.
    [[nodiscard]] bool diverged() const { return diverged_; }

private:
    // At the step, the thread with this rank in the default order runs.
    struct Place {
        std::uint64_t step;
        std::size_t rank;
        std::size_t ranks;
    };

    std::size_t max_;
    bool begun_ = false;
    bool diverged_ = false;
    std::vector<Place> places_;
    std::vector<std::size_t> enabled_;            // by step of the current run: the number of enabled threads
    std::vector<std::vector<std::size_t>> runs_;  // the same of the run with the first so many places
};

}  // namespace npushmem::npu::check::explore
