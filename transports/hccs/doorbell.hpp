// What wakes the thread that drives the engines: a descriptor that becomes readable when it is told to.
#pragma once

#include <chrono>

#include "npushmem/plugin/status.hpp"

namespace npushmem::hccs {

class Doorbell {
public:
    static Result<Doorbell> make();
    Doorbell(Doorbell&& other) noexcept;
    Doorbell(const Doorbell&) = delete;
    Doorbell& operator=(const Doorbell&) = delete;
    ~Doorbell();

    [[nodiscard]] int descriptor() const { return timer_; }
    // On the steady clock; a time that has passed: at once. Replaces what was set before. Any thread.
    void ring_at(std::chrono::nanoseconds time) const;
    // Not readable until it rings again.
    void silence() const;

private:
    explicit Doorbell(int timer) : timer_(timer) {}

    int timer_;
};

}  // namespace npushmem::hccs
