// SPDX-License-Identifier: BSD-3-Clause
// The measuring engine: its clock, its points, its worker group, and the engine itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/engine/statistics.hpp"

namespace npushmem::bench {

// The engine's clock. An interface, so that tests of the calibration need no real time.
class Clock {
public:
    Clock() = default;
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    virtual ~Clock() = default;

    // Monotonic, from any fixed point.
    virtual std::chrono::nanoseconds now() = 0;
};

class SteadyClock final : public Clock {
public:
    std::chrono::nanoseconds now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

// The two functions below keep the compiler from removing a measured loop. They cost no instruction.

// Forces the compiler to compute `value`.
template <class T>
inline void do_not_optimize(const T& value) {
    asm volatile("" : : "r,m"(value) : "memory");
}

// Compiler barrier: earlier stores are in memory, and later loads load again.
inline void clobber_memory() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Repeats the measured operation the given number of times. It contains the loop, so that the engine adds no time per
// operation.
using Batch = std::function<void(std::uint64_t)>;

struct Variant {
    std::string name;  // "npushmem", or the operation of the baseline
    Batch batch;
    bool baseline = true;
};

// An operation and its baselines, measured under the same conditions.
struct Point {
    std::string name{};       // "put 1 KiB"
    std::uint64_t bytes = 0;  // moved by one iteration; 0: no bandwidth is reported
    // The reported time is that of an iteration divided by this: 2 for one way of a ping-pong.
    double parts = 1;
    // true: the batches need all PEs, which run them together. false: PE 0 runs them, the others wait.
    bool shared = false;
    std::vector<Variant> variants{};              // the measured one first, then its baselines
    std::vector<std::shared_ptr<void>> memory{};  // of this process, that the batches work on
    std::string no_baseline{};                    // why there is none in this job; empty: there is one
};

// A command to the workers: runs a batch of a variant.

struct BatchCommand {
    static constexpr std::uint32_t stop = ~std::uint32_t{0};

    std::uint32_t variant = stop;
    std::uint32_t iterations = 0;

    bool operator==(const BatchCommand&) const = default;
};

// The processes that measure together. One is the leader, which decides which variant runs how often; the others
// execute its commands.
class WorkerGroup {
public:
    WorkerGroup() = default;
    WorkerGroup(const WorkerGroup&) = delete;
    WorkerGroup& operator=(const WorkerGroup&) = delete;
    virtual ~WorkerGroup() = default;

    // True for exactly one worker.
    [[nodiscard]] virtual bool is_leader() const = 0;
    // Sends the command to all workers; on return each has it or is about to receive it.
    virtual void broadcast(const BatchCommand& command) = 0;
    // Returns the leader's next command, or stop if there are no more.
    virtual BatchCommand receive() = 0;
};

// A process on its own.
class SoloWorkerGroup final : public WorkerGroup {
public:
    [[nodiscard]] bool is_leader() const override { return true; }
    void broadcast(const BatchCommand& /*command*/) override {}
    BatchCommand receive() override { return {}; }
};

// Settings of a measurement.

struct EngineSettings {
    int rounds = 60;
    // Long enough that the clock's own cost and grain vanish, short enough that most batches are not interrupted.
    std::chrono::nanoseconds batch{200'000};
    std::uint32_t max_iterations = 1U << 24;
};

// All times are in nanoseconds per part of an iteration, without the clock's own cost.
struct VariantResult {
    std::string name;
    bool baseline = true;
    std::uint32_t iterations = 0;  // of a batch
    std::vector<double> samples;   // one per round
    Summary time;
    // The measured variant's time divided by this baseline's, round by round; 1 for the measured variant itself.
    Summary ratio;
};

struct PointResult {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<VariantResult> variants;
    std::string no_baseline{};  // of the point
};

class ProgressLine;

// Measures points: warms up, finds a batch size per variant, and then runs all variants in turn, round after round, so
// that disturbances of the machine affect them alike.
class Engine {
public:
    Engine(Clock& clock, const EngineSettings& settings);

    // The leader measures and returns the result; the other workers serve and return an empty one.
    PointResult measure(const Point& point, WorkerGroup& worker_group);

    // From now on each round of a point advances the current step of `progress`, which outlives this; null: none.
    void report_to(ProgressLine* progress) { progress_ = progress; }

    // Cost of reading the clock, which the engine subtracts from every batch.
    [[nodiscard]] double clock_ns() const { return clock_ns_; }
    [[nodiscard]] const EngineSettings& settings() const { return settings_; }

private:
    // Runs one batch on all workers and returns its nanoseconds.
    double time(const Point& point, std::uint32_t variant, std::uint32_t iterations, WorkerGroup& worker_group);
    // Finds the number of iterations for the intended batch time. The trial batches are also the warm-up.
    std::uint32_t calibrate(const Point& point, std::uint32_t variant, WorkerGroup& worker_group);
    void run_round(const Point& point, int round, std::vector<VariantResult>& results, WorkerGroup& worker_group);
    static void serve(const Point& point, WorkerGroup& worker_group);

    Clock& clock_;
    EngineSettings settings_;
    double clock_ns_;
    ProgressLine* progress_ = nullptr;
};

}  // namespace npushmem::bench
