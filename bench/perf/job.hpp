// The job this process is a PE of: start, end, barrier, and values gathered on all PEs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// Symmetric memory of the library. Making and destroying it is collective.
struct SymmetricFree {
    void operator()(void* memory) const;
};
template <class T>
using Symmetric = std::unique_ptr<T[], SymmetricFree>;

class Job {
public:
    // Starts the library for this process; at most one Job at a time.
    static Result<std::unique_ptr<Job>> start();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job();

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] int pes() const { return pes_; }
    [[nodiscard]] bool is_reporter() const { return pe_ == 0; }

    // Waits for all PEs. Collective like everything below.
    static void barrier();
    // `own` of every PE, one after the other, on every PE; all must give equally many.
    Result<std::vector<double>> allgather(const std::vector<double>& own) const;

private:
    Job(int pe, int pes) : pe_(pe), pes_(pes) {}

    int pe_;
    int pes_;
};

// The library's last failure in this thread; ok if there was none.
Status library_failure();

// Collective: zeroed, 128-byte aligned; null (and library_failure()) when there is not enough.
void* allocate_symmetric(std::size_t bytes);

template <class T>
Result<Symmetric<T>> make_symmetric(std::size_t count) {
    void* memory = allocate_symmetric(count * sizeof(T));
    if (memory == nullptr) return library_failure();
    return Symmetric<T>(static_cast<T*>(memory));
}

}  // namespace npushmem::perf
