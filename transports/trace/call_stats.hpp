// How often a function was called, with how many bytes, for how long, and how it ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::trace {

// Counters for any number of threads; read when they have stopped. All accesses are relaxed: nothing is published by
// them, and the reader comes after the threads' end.
class CallStats {
public:
    void add(Code code, std::uint64_t bytes, std::chrono::nanoseconds duration);

    [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t again() const { return again_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

    // "put: 12 calls, 4 KiB, 1.2 us, 100 ns each, 3 times 'again', 1 failed"
    [[nodiscard]] std::string summary(std::string_view function) const;

private:
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::int64_t> nanoseconds_{0};
    std::atomic<std::uint64_t> again_{0};
    std::atomic<std::uint64_t> failed_{0};
};

}  // namespace npushmem::trace
