// How a waiter sleeps so that the writer wakes it, and why no wake-up is lost.
//
// The waiter announces itself in the line that it waits for, looks again, then sleeps; the writer stores, then looks
// whether anybody has announced. All of it is sequentially consistent, so of the announcement and the store one comes
// first and is seen by the other side: either the second look finds the value, or the writer finds the sleeper. The
// announcement is in the flag's own line, which the writer owns at that moment anyway, so its look costs next to
// nothing. Between the second look and the sleep the kernel compares once more.
//
// Waking is a tree: the writer wakes two, and whoever leaves finds those who are still announced and wakes two more.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <utility>

#include "core/base/wait_os.hpp"

namespace npushmem {

// A place to sleep where a writer can wake the sleeper. The order of calls is: announce, the condition is looked at
// once more, park, retract.
class Parking {
public:
    Parking() = default;
    Parking(const Parking&) = delete;
    Parking& operator=(const Parking&) = delete;
    virtual ~Parking() = default;

    virtual void announce() = 0;
    // Returns when woken, or after `longest`, or for no reason.
    virtual void park(WaitOs& os, std::chrono::nanoseconds longest) = 0;
    virtual void retract() = 0;
};

// A counter that is waited for, with the number of those who sleep on it. Every access is sequentially consistent.
template <class L>
concept ParkingCounter = requires(L line, std::uint64_t value, std::uint32_t count, WaitOs& os,
                                  std::chrono::nanoseconds longest) {
    { line.value() } -> std::same_as<std::uint64_t>;
    line.store(value);
    { line.sleepers() } -> std::same_as<std::uint32_t>;
    line.add_sleeper();
    // Returns how many remain.
    { line.remove_sleeper() } -> std::same_as<std::uint32_t>;
    // Unless the value is another than `expected`: until woken, or `longest`, or for no reason.
    line.sleep(os, value, longest);
    // Up to `count` of those who sleep; returns how many it were.
    { line.wake(count) } -> std::same_as<std::uint32_t>;
};

inline constexpr std::uint32_t wake_fanout = 2;

template <ParkingCounter Line>
class FutexParking final : public Parking {
public:
    explicit FutexParking(Line line) : line_(std::move(line)) {}

    void announce() override {
        line_.add_sleeper();
        // Before the second look: a value that comes after it differs from this one, and the sleep is refused.
        seen_ = line_.value();
    }
    void park(WaitOs& os, std::chrono::nanoseconds longest) override { line_.sleep(os, seen_, longest); }
    void retract() override {
        const std::uint32_t others = line_.remove_sleeper();
        if (others > 0 && line_.value() != seen_) woken_ += line_.wake(wake_fanout);
    }

    // How many sleepers this one has woken as it left.
    [[nodiscard]] std::uint32_t woken() const { return woken_; }

private:
    Line line_;
    std::uint32_t woken_ = 0;
    std::uint64_t seen_ = 0;
};

// The writer's side, after it has changed the value. Returns how many it has woken.
template <ParkingCounter Line>
std::uint32_t wake_sleepers(Line& line) {
    return line.sleepers() == 0 ? 0 : line.wake(wake_fanout);
}

}  // namespace npushmem
