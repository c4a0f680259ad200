// A clock that only the test moves; every reading itself costs what the test says.
#pragma once

#include "bench/engine/clock.hpp"

namespace npushmem::fakes {

class FakeClock final : public bench::Clock {
public:
    explicit FakeClock(std::chrono::nanoseconds reading = {}) : reading_(reading) {}

    std::chrono::nanoseconds now() override { return now_ += reading_; }
    void pass(std::chrono::nanoseconds time) { now_ += time; }

private:
    std::chrono::nanoseconds reading_;
    std::chrono::nanoseconds now_{0};
};

}  // namespace npushmem::fakes
