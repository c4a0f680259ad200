#include "bench/perf/measure.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

namespace npushmem::perf {
namespace {

// Seconds of a clock that all processes of a host share.
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Of all threads of this process.
double processor_seconds() {
    timespec time{};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// stamps: per PE, per iteration, begin and end.
std::vector<double> spans(const std::vector<double>& stamps, int pes, std::size_t iterations) {
    std::vector<double> result;
    for (std::size_t i = 0; i < iterations; ++i) {
        double begin = std::numeric_limits<double>::max();
        double end = 0;
        for (std::size_t pe = 0; pe < static_cast<std::size_t>(pes); ++pe) {
            begin = std::min(begin, stamps[(pe * iterations + i) * 2]);
            end = std::max(end, stamps[(pe * iterations + i) * 2 + 1]);
        }
        result.push_back(end - begin);
    }
    return result;
}

Status repeat_quietly(int times, const Operation& operation) {
    for (int i = 0; i < times; ++i) {
        if (Status status = operation(); !status.ok()) return status;
    }
    return {};
}

}  // namespace

Result<std::vector<double>> time_each(const Job& job, const Repeat& repeat, const Operation& operation) {
    if (Status status = repeat_quietly(repeat.warmup, operation); !status.ok()) return status;
    std::vector<double> stamps;
    for (int i = 0; i < repeat.iterations; ++i) {
        Job::barrier();
        stamps.push_back(now());
        if (Status status = operation(); !status.ok()) return status;
        stamps.push_back(now());
    }
    auto all = job.allgather(stamps);
    if (!all.ok()) return all.status();
    return spans(all.value(), job.pes(), static_cast<std::size_t>(repeat.iterations));
}

Result<BackToBack> time_back_to_back(const Job& job, int iterations, const Operation& operation) {
    double processor = 0;
    const auto once = [&] {
        const double begin = processor_seconds();
        Status status = repeat_quietly(iterations, operation);
        processor = processor_seconds() - begin;
        return status;
    };
    auto total = time_each(job, {0, 1}, once);
    if (!total.ok()) return total.status();
    auto processors = job.allgather({processor});
    if (!processors.ok()) return processors.status();
    const double sum = std::accumulate(processors.value().begin(), processors.value().end(), 0.0);
    return BackToBack{total.value().front() / iterations, sum / job.pes() / iterations};
}

}  // namespace npushmem::perf
