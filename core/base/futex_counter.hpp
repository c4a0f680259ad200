// A counter in memory shared between processes on which they can sleep: a ParkingCounter over a futex. 64 bytes:
//     0..7   the counter     8..11  how many sleep on it     12..15  unused     16..63  for who owns the line
// both in native byte order and zero at first. Someone who dies in its sleep stays counted: later writers then make a
// system call that wakes nobody, and nothing else is wrong.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/wait_os.hpp"

namespace npushmem {

class FutexCounter {
public:
    static constexpr std::size_t bytes = 64;

    // `line`: aligned to `bytes`; it must outlive this.
    explicit FutexCounter(std::byte* line) : line_(line) {}

    [[nodiscard]] std::atomic_ref<std::uint64_t> counter() const {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line_));
    }

    [[nodiscard]] std::uint64_t value() const { return counter().load(); }
    void store(std::uint64_t value) { counter().store(value); }
    [[nodiscard]] std::uint32_t sleepers() const { return announced().load(); }
    void add_sleeper() { announced().fetch_add(1); }
    std::uint32_t remove_sleeper() { return announced().fetch_sub(1) - 1; }
    void sleep(WaitOs& os, std::uint64_t expected, std::chrono::nanoseconds longest) {
        os.sleep_on(low_half(), static_cast<std::uint32_t>(expected), longest);
    }
    std::uint32_t wake(std::uint32_t count);

private:
    [[nodiscard]] std::atomic_ref<std::uint32_t> announced() const {
        return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(line_ + sizeof(std::uint64_t)));
    }
    // The half of the counter that changes at every step is what the kernel compares.
    [[nodiscard]] std::uint32_t* low_half() const;

    std::byte* line_;
};
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "lines are shared between processes");

}  // namespace npushmem
