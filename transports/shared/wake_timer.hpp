// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <utility>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Wakes the thread that drives a transport: its descriptor becomes readable at a set time.
class WakeTimer {
public:
    static Result<WakeTimer> make();

    [[nodiscard]] int descriptor() const { return timer_.get(); }
    // Steady-clock time; a past time means now. Replaces the previous time. Any thread may call.
    void set(std::chrono::nanoseconds time) const;
    // The descriptor stays unreadable until the next time that is set.
    void clear() const;

private:
    explicit WakeTimer(FileDescriptor timer) : timer_(std::move(timer)) {}

    FileDescriptor timer_;
};

}  // namespace npushmem
