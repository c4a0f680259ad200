// Measures points: warms up, finds a batch size per variant, then runs all variants in turn, round after round, so that
// whatever disturbs the machine disturbs them alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/engine/clock.hpp"
#include "bench/engine/point.hpp"
#include "bench/engine/statistics.hpp"
#include "bench/engine/worker_group.hpp"

namespace npushmem::bench {

struct EngineSettings {
    int rounds = 60;
    // Long enough that the clock's own cost and grain vanish, short enough that most batches are not interrupted.
    std::chrono::nanoseconds batch{200'000};
    std::uint32_t max_iterations = 1U << 24;
};

// All times in nanoseconds per part of an iteration, the clock's own cost taken off.
struct VariantResult {
    std::string name;
    bool baseline = true;
    std::uint32_t iterations = 0;  // of a batch
    std::vector<double> samples;   // one per round
    Summary time;
    // The measured variant's time divided by this baseline's, round by round; of the measured variant itself: 1.
    Summary ratio;
};

struct PointResult {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<VariantResult> variants;
};

class Engine {
public:
    Engine(Clock& clock, const EngineSettings& settings);

    // The leader measures and returns the result; the other workers serve and return an empty one.
    PointResult measure(const Point& point, WorkerGroup& worker_group);

    // What reading the clock costs, and what is taken off every batch.
    [[nodiscard]] double clock_ns() const { return clock_ns_; }
    [[nodiscard]] const EngineSettings& settings() const { return settings_; }

private:
    // Nanoseconds of one batch of all workers.
    double time(const Point& point, std::uint32_t variant, std::uint32_t iterations, WorkerGroup& worker_group);
    // How many iterations last about as long as a batch should; running them on the way there is the warm-up.
    std::uint32_t calibrate(const Point& point, std::uint32_t variant, WorkerGroup& worker_group);
    void run_round(const Point& point, int round, std::vector<VariantResult>& results, WorkerGroup& worker_group);
    static void serve(const Point& point, WorkerGroup& worker_group);

    Clock& clock_;
    EngineSettings settings_;
    double clock_ns_;
};

}  // namespace npushmem::bench
