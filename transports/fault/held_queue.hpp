// SPDX-License-Identifier: BSD-3-Clause
// The operations that one queue of the fault decorator holds back, and the rules by which they may overtake each other.
//
// Operation X may be passed on when the queue holds no update to the same PE that was posted before a fence that
// precedes X. The contract promises only this order. All other operations are shuffled.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "npushmem/plugin/transport.hpp"
#include "transports/shared/posted_operation.hpp"

namespace npushmem::fault {

// An operation that the fault decorator has accepted but not yet passed on.
struct HeldOperation {
    PostedOperation posted;
    std::uint64_t token = 0;
    std::uint64_t epoch = 0;    // number of fences before it on its queue
    std::uint32_t waiting = 0;  // number of steps until it may be passed on
};

using Random = std::mt19937_64;

// The owner serialises calls.
class HeldQueue {
public:
    HeldQueue(Transport& inner, std::uint64_t number, bool reorder)
        : inner_(&inner), number_(number), reorder_(reorder) {}

    // The queue holds at most this many operations.
    static constexpr std::size_t room = 256;
    [[nodiscard]] bool full() const { return held_.size() >= room; }
    [[nodiscard]] std::size_t held() const { return held_.size(); }

    // Holds the operation and returns its token.
    std::uint64_t hold(HeldOperation operation);
    void fence() { ++epoch_; }

    // Advances time by one step: passes on operations that are due, in random order where the rules allow it. An
    // operation that the inner transport rejects is dropped; test and quiet report its failure. Returns true when it
    // passed something on.
    bool step(Random& random);
    // Code::ok when no operation is held and all are complete. Reports each failure once.
    Code quiet();
    // The same for one operation.
    Code test(std::uint64_t token);

private:
    [[nodiscard]] std::vector<std::size_t> candidates() const;
    Code issue(std::size_t index);
    Code fence_inner_before(const HeldOperation& operation);
    void remember(const HeldOperation& operation, Code code, std::uint64_t inner_token);

    Transport* inner_;
    std::uint64_t number_;
    bool reorder_;
    std::uint64_t epoch_ = 0;
    std::uint64_t last_token_ = 0;
    std::vector<HeldOperation> held_;  // in the order of posting
    std::map<std::uint64_t, std::uint64_t>
        in_flight_;                         // our token → inner token of operations not known to be complete
    std::map<std::uint64_t, Code> failed_;  // by token, until it is reported
    std::map<int, std::uint64_t> updated_since_fence_;  // PE → oldest epoch of an update passed on since inner fence
};

}  // namespace npushmem::fault
