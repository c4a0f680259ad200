// SPDX-License-Identifier: BSD-3-Clause
// Sleeping so that the writer can wake the waiter without a lost wake-up.
//
// The waiter announces itself in the line that it waits for, checks the condition again, then sleeps. The writer
// stores, then checks for announcements. All accesses are sequentially consistent, so the announcement and the store
// are ordered and the later side sees the earlier one: either the second check finds the value, or the writer finds the
// sleeper. The announcement is in the flag's own line, which the writer owns at that moment, so its check is nearly
// free. Between the second check and the sleep the kernel compares once more.
//
// Waking is a tree: the writer wakes two sleepers, and each leaving sleeper wakes two more that are still announced.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace npushmem {

// The operating system's services for waits; an interface, so that tests wait without time passing.
class WaitOs {
public:
    WaitOs() = default;
    WaitOs(const WaitOs&) = delete;
    WaitOs& operator=(const WaitOs&) = delete;
    virtual ~WaitOs() = default;

    // Monotonic, from an arbitrary origin.
    virtual std::chrono::nanoseconds now() = 0;
    // Returns the time for which this thread has run, from an arbitrary origin.
    virtual std::chrono::nanoseconds run_time() = 0;
    // Lets another runnable thread of this core run first. The kernel may let this one go on: Linux does, while it is
    // owed time.
    virtual void yield() = 0;
    // Sleeps at least this long, unless a signal arrives.
    virtual void sleep(std::chrono::nanoseconds time) = 0;
    // Waits on a futex in shared memory: returns when woken, after `longest`, spuriously, or at once when the word
    // differs from `expected`.
    virtual void sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) = 0;
};

// Wakes up to `count` threads of any process that sleep on the word; returns how many it woke.
std::uint32_t wake_sleepers_on(std::uint32_t* word, std::uint32_t count);

class SystemWaitOs final : public WaitOs {
public:
    std::chrono::nanoseconds now() override;
    std::chrono::nanoseconds run_time() override;
    void yield() override;
    void sleep(std::chrono::nanoseconds time) override;
    void sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) override;
};

// Marks a polling loop for the core: fewer mispredicted loads when the value arrives, more throughput for the sibling
// hyper-thread. Costs 10 to 50 ns.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Orders a store before a later load, as std::atomic_thread_fence(seq_cst) does. Partner: the same fence of the thread
// that stores the value loaded here. Compilers apply the fence's locked operation to the word at the stack pointer. At
// the end of a function that is the return address, and the return waits for the whole fence (measured: 2.4 of 9 ns).
// The red zone below it is unused.
inline void full_fence() {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    asm volatile("lock; orl $0, -8(%%rsp)" : : : "memory", "cc");
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// A ParkingCounter over a futex in memory that processes share. 64 bytes:
//     0..7   the counter     8..11  number of sleepers     12..15  unused     16..63  free for the owner of the line
// Both numbers are in native byte order and initially zero. A process that dies in its sleep stays counted: later
// writers then make a system call that wakes nobody, without other effects.
class FutexCounter {
public:
    static constexpr std::size_t bytes = 64;

    // `line` is aligned to `bytes` and must outlive this.
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
    std::uint32_t wake(std::uint32_t count) { return wake_sleepers_on(low_half(), count); }

private:
    [[nodiscard]] std::atomic_ref<std::uint32_t> announced() const {
        return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(line_ + sizeof(std::uint64_t)));
    }
    // The kernel compares the half of the counter that changes at every step.
    [[nodiscard]] std::uint32_t* low_half() const;

    std::byte* line_;
};
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "lines are shared between processes");

// Lets a writer wake a sleeper. The caller calls announce, checks the condition again, then calls park and retract.
class Parking {
public:
    Parking() = default;
    Parking(const Parking&) = delete;
    Parking& operator=(const Parking&) = delete;
    virtual ~Parking() = default;

    virtual void announce() = 0;
    // Returns when woken, after `longest`, or spuriously.
    virtual void park(WaitOs& os, std::chrono::nanoseconds longest) = 0;
    virtual void retract() = 0;
};

// A counter with the number of threads that sleep on it. Every access is sequentially consistent.
template <class L>
concept ParkingCounter = requires(L line, std::uint64_t value, std::uint32_t count, WaitOs& os,
                                  std::chrono::nanoseconds longest) {
    { line.value() } -> std::same_as<std::uint64_t>;
    line.store(value);
    { line.sleepers() } -> std::same_as<std::uint32_t>;
    line.add_sleeper();
    // Returns the number of remaining sleepers.
    { line.remove_sleeper() } -> std::same_as<std::uint32_t>;
    // Returns when woken, after `longest`, spuriously, or at once when the value differs from `expected`.
    line.sleep(os, value, longest);
    // Wakes up to `count` sleepers; returns how many it woke.
    { line.wake(count) } -> std::same_as<std::uint32_t>;
};

inline constexpr std::uint32_t wake_fanout = 2;

template <ParkingCounter Line>
class FutexParking final : public Parking {
public:
    explicit FutexParking(Line line) : line_(std::move(line)) {}

    void announce() override {
        line_.add_sleeper();
        // Loaded before the second check: a later value differs from this one, so the kernel rejects the sleep.
        seen_ = line_.value();
    }
    void park(WaitOs& os, std::chrono::nanoseconds longest) override { line_.sleep(os, seen_, longest); }
    void retract() override {
        const std::uint32_t others = line_.remove_sleeper();
        if (others > 0 && line_.value() != seen_) woken_ += line_.wake(wake_fanout);
    }

    // Returns how many sleepers this one woke when it left.
    [[nodiscard]] std::uint32_t woken() const { return woken_; }

private:
    Line line_;
    std::uint32_t woken_ = 0;
    std::uint64_t seen_ = 0;
};

// For the writer, after it changed the value. Returns how many sleepers it woke.
template <ParkingCounter Line>
std::uint32_t wake_sleepers(Line& line) {
    return line.sleepers() == 0 ? 0 : line.wake(wake_fanout);
}

}  // namespace npushmem
