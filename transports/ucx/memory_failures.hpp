// SPDX-License-Identifier: BSD-3-Clause
// Allocations of UCX that fail. UCX 1.13 repeats them without end and reports them in its log only.
#pragma once

namespace npushmem::ucx {

// Not thread-safe.
class MemoryFailures {
public:
    // UCX repeats an allocation at each progress, within microseconds. So many failures mean that it will not succeed.
    static constexpr int limit = 1000;

    // While it exists, the failures of UCX in this thread count.
    class Counting {
    public:
        explicit Counting(MemoryFailures& failures);
        Counting(const Counting&) = delete;
        Counting& operator=(const Counting&) = delete;
        ~Counting();
    };

    void reset() { count_ = 0; }
    [[nodiscard]] bool are_lasting() const { return count_ >= limit; }
    // Of the messages about one failed allocation only the first two are shown.
    [[nodiscard]] bool add() { return ++count_ <= 2; }

private:
    int count_ = 0;
};

}  // namespace npushmem::ucx
