// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/engine.hpp"

#include <algorithm>
#include <cmath>

#include "bench/engine/progress_line.hpp"

namespace npushmem::bench {
namespace {

constexpr int clock_readings = 1000;

double nanoseconds_of(std::chrono::nanoseconds time) { return static_cast<double>(time.count()); }

// Two successive readings: the overhead in every timed batch.
double cost_of(Clock& clock) {
    std::vector<double> costs;
    for (int i = 0; i < clock_readings; ++i) {
        const auto begin = clock.now();
        costs.push_back(nanoseconds_of(clock.now() - begin));
    }
    return summarise(std::move(costs)).median;
}

void summarise_all(std::vector<VariantResult>& results) {
    for (VariantResult& result : results) {
        result.time = summarise(result.samples);
        result.ratio = summarise(paired_ratios(results.front().samples, result.samples));
    }
}

}  // namespace

Engine::Engine(Clock& clock, const EngineSettings& settings)
    : clock_(clock), settings_(settings), clock_ns_(cost_of(clock)) {}

PointResult Engine::measure(const Point& point, WorkerGroup& worker_group) {
    if (!worker_group.is_leader()) {
        serve(point, worker_group);
        return {};
    }
    PointResult result{point.name, point.bytes, {}, point.no_baseline};
    for (std::uint32_t i = 0; i < point.variants.size(); ++i) {
        const Variant& variant = point.variants[i];
        result.variants.push_back({variant.name, variant.baseline, calibrate(point, i, worker_group), {}, {}, {}});
    }
    for (int round = 0; round < settings_.rounds; ++round) {
        if (progress_ != nullptr)
            progress_->advance(static_cast<std::size_t>(round), static_cast<std::size_t>(settings_.rounds));
        run_round(point, round, result.variants, worker_group);
    }
    worker_group.broadcast({});
    summarise_all(result.variants);
    return result;
}

double Engine::time(const Point& point, std::uint32_t variant, std::uint32_t iterations, WorkerGroup& worker_group) {
    worker_group.broadcast({variant, iterations});
    const auto begin = clock_.now();
    point.variants[variant].batch(iterations);
    return std::max(0.0, nanoseconds_of(clock_.now() - begin) - clock_ns_);
}

std::uint32_t Engine::calibrate(const Point& point, std::uint32_t variant, WorkerGroup& worker_group) {
    const double wanted = nanoseconds_of(settings_.batch);
    constexpr double max_growth = 10;
    std::uint32_t iterations = 1;
    double took = time(point, variant, iterations, worker_group);
    // A first batch can take any time (page faults, cold code), so a later batch decides.
    took = std::min(took, time(point, variant, iterations, worker_group));
    while (took < wanted / 2 && iterations < settings_.max_iterations) {
        const double growth = took > 0 ? std::min(max_growth, wanted / took) : max_growth;
        const double next = std::ceil(std::max(2.0, growth) * iterations);
        iterations = static_cast<std::uint32_t>(std::min<double>(next, settings_.max_iterations));
        took = time(point, variant, iterations, worker_group);
    }
    return iterations;
}

// The variants take turns in running first, and some rounds run in reverse order, so that each variant follows each
// other one equally often: the previous variant determines the state of the caches.
void Engine::run_round(const Point& point, int round, std::vector<VariantResult>& results, WorkerGroup& worker_group) {
    const auto count = static_cast<std::uint32_t>(results.size());
    const std::uint32_t first = static_cast<std::uint32_t>(round) % count;
    const bool turned = static_cast<std::uint32_t>(round) / count % 2 == 1;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t variant = (first + (turned ? count - i : i)) % count;
        VariantResult& result = results[variant];
        const double took = time(point, variant, result.iterations, worker_group);
        result.samples.push_back(took / result.iterations / point.parts);
    }
}

void Engine::serve(const Point& point, WorkerGroup& worker_group) {
    for (BatchCommand command = worker_group.receive(); command.variant < point.variants.size();
         command = worker_group.receive())
        point.variants[command.variant].batch(command.iterations);
}

}  // namespace npushmem::bench
