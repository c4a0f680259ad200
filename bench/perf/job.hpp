// SPDX-License-Identifier: BSD-3-Clause
// The job of which this process is a PE: start, end, barrier, gathered values, and timed operations.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// Symmetric memory of the library. Creation and destruction are collective.
struct SymmetricFree {
    void operator()(void* memory) const;
};
template <class T>
using Symmetric = std::unique_ptr<T[], SymmetricFree>;

class Job {
public:
    // Starts the library for this process; at most one Job at a time. Null on failure, which the library has reported.
    static std::unique_ptr<Job> start();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job();

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] int pes() const { return pes_; }
    [[nodiscard]] bool is_reporter() const { return pe_ == 0; }

    // Waits for all PEs. Collective, like all functions below.
    static void barrier();
    // Returns `own` of every PE, in the order of PEs, on every PE. All must pass the same number of values.
    Result<std::vector<double>> allgather(const std::vector<double>& own) const;

private:
    Job(int pe, int pes) : pe_(pe), pes_(pes) {}

    int pe_;
    int pes_;
};

// The library's last failure in this thread; ok if there is none.
Status library_failure();

// Collective. The memory is zeroed and 128-byte aligned. Returns null, and sets library_failure(), if memory is
// exhausted.
void* allocate_symmetric(std::size_t bytes);

template <class T>
Result<Symmetric<T>> make_symmetric(std::size_t count) {
    void* memory = allocate_symmetric(count * sizeof(T));
    if (memory == nullptr) return library_failure();
    return Symmetric<T>(static_cast<T*>(memory));
}

// Starts the library and calls `body`. Prints a failure of `body` with the subcommand's name and the PE. Returns the
// exit status of the process.
int run_in_job(const char* subcommand, const std::function<Status(const Job&)>& body);

// Repetitions of a timed operation that all PEs run together.

struct Repeat {
    int warmup = 0;
    int iterations = 1;
};

using Operation = std::function<Status()>;

// Returns the seconds of each iteration, from the start of the first PE to the end of the last, by the host's common
// clock. A barrier precedes each iteration. Collective; the same result on every PE.
Result<std::vector<double>> time_each(const Job& job, const Repeat& repeat, const Operation& operation);

// Time per iteration of back-to-back calls without a barrier.
struct BackToBack {
    double seconds = 0;
    double processor_seconds = 0;  // CPU time of one PE on average: without sleep
};
// Times `iterations` calls. Collective; the same result on every PE.
Result<BackToBack> time_back_to_back(const Job& job, int iterations, const Operation& operation);

}  // namespace npushmem::perf
