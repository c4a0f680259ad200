// Time as the engine sees it; an interface, so that calibration is tested without time passing.
#pragma once

#include <chrono>

namespace npushmem::bench {

class Clock {
public:
    Clock() = default;
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    virtual ~Clock() = default;

    // Monotonic, from any fixed point.
    virtual std::chrono::nanoseconds now() = 0;
};

class SteadyClock final : public Clock {
public:
    std::chrono::nanoseconds now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

}  // namespace npushmem::bench
