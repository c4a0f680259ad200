// SPDX-License-Identifier: BSD-3-Clause
// A moment at which a wait times out, or never.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

namespace npushmem::rendezvous {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;
using Milliseconds = std::chrono::milliseconds;

class Deadline {
public:
    static Deadline never() { return Deadline(); }
    // Has passed already: poll, do not wait.
    static Deadline now() { return Deadline(Moment{}); }
    static Deadline at(Moment when) { return Deadline(when); }
    // Messages report `span`. `grace` is added to it, so that a side that knows the cause can report it first.
    static Deadline after(Clock::duration span, Clock::duration grace = {}) {
        Deadline made(Clock::now() + span + grace);
        made.span_ = std::chrono::duration_cast<Milliseconds>(span);
        return made;
    }

    [[nodiscard]] bool passed(Moment now = Clock::now()) const { return when_ && now >= *when_; }

    // The allowed time, for messages; 0 if unknown.
    [[nodiscard]] Milliseconds span() const { return span_; }

    [[nodiscard]] Deadline sooner(Deadline other) const {
        if (!when_) return other;
        return other.when_ && *other.when_ < *when_ ? other : *this;
    }

    // For poll and epoll_wait: milliseconds to wait, rounded up so that the wait does not end too early; -1: no limit.
    [[nodiscard]] int poll_milliseconds(Moment now = Clock::now()) const {
        if (!when_) return -1;
        const auto left = std::chrono::ceil<Milliseconds>(*when_ - now).count();
        return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
    }

private:
    Deadline() = default;
    explicit Deadline(Moment when) : when_(when) {}

    std::optional<Moment> when_;
    Milliseconds span_{0};
};

}  // namespace npushmem::rendezvous
