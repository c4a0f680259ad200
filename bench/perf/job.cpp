// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/job.hpp"

#include <fmt/format.h>

#include <time.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <numeric>

#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::perf {

Status library_failure() {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    if (code == 0) return {};
    return {static_cast<Code>(code), message};
}

void SymmetricFree::operator()(void* memory) const { npushmem_free(memory); }

std::unique_ptr<Job> Job::start() {
    int provided = 0;
    if (npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, &provided) != 0) return nullptr;
    return std::unique_ptr<Job>(new Job(npushmem_my_pe(), npushmem_n_pes()));
}

Job::~Job() { npushmem_finalize(); }

void Job::barrier() { npushmem_barrier_all(); }

void* allocate_symmetric(std::size_t bytes) {
    constexpr std::size_t alignment = 128;
    void* memory = npushmem_align(alignment, std::max(bytes, alignment));
    if (memory != nullptr) std::memset(memory, 0, bytes);
    Job::barrier();
    return memory;
}

Result<std::vector<double>> Job::allgather(const std::vector<double>& own) const {
    const std::size_t count = own.size();
    auto gathered = make_symmetric<double>(count * static_cast<std::size_t>(pes_));
    if (!gathered.ok()) return gathered.status();
    double* mine = gathered.value().get() + count * static_cast<std::size_t>(pe_);
    for (int pe = 0; pe < pes_; ++pe) npushmem_putmem(mine, own.data(), count * sizeof(double), pe);
    barrier();
    std::vector<double> values(count * static_cast<std::size_t>(pes_));
    std::copy_n(gathered.value().get(), values.size(), values.begin());
    return values;
}

int run_in_job(const char* subcommand, const std::function<Status(const Job&)>& body) {
    const auto job = Job::start();
    if (!job) return EXIT_FAILURE;
    const Status status = body(*job);
    if (status.ok()) return EXIT_SUCCESS;
    std::cerr << fmt::format("npushmem-perf {}: PE {}: {}\n", subcommand, job->pe(), status.message());
    return EXIT_FAILURE;
}

namespace {

// Seconds of a clock that all processes of a host share.
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// CPU time of all threads of this process.
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
