// What wakes the thread that drives the engines: a descriptor that becomes readable when it is told to.
#pragma once

#include <chrono>

#include "npushmem/plugin/status.hpp"

namespace npushmem::hccs {

class WakeTimer {
public:
    static Result<WakeTimer> make();
    WakeTimer(WakeTimer&& other) noexcept;
    WakeTimer(const WakeTimer&) = delete;
    WakeTimer& operator=(const WakeTimer&) = delete;
    ~WakeTimer();

    [[nodiscard]] int descriptor() const { return timer_; }
    // On the steady clock; a time that has passed: at once. Replaces what was set before. Any thread.
    void set(std::chrono::nanoseconds time) const;
    // Not readable until the next time that is set.
    void clear() const;

private:
    explicit WakeTimer(int timer) : timer_(timer) {}

    int timer_;
};

}  // namespace npushmem::hccs
