// An operation that the fault decorator has accepted but not yet passed on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "npushmem/plugin/transport.hpp"
#include "transports/shared/posted_operation.hpp"

namespace npushmem::fault {

struct HeldOperation {
    PostedOperation posted;
    std::uint64_t token = 0;
    std::uint64_t epoch = 0;    // how many fences came before it on its queue
    std::uint32_t waiting = 0;  // steps until it may be passed on
};

// The operations that one queue of the fault decorator holds back, and the rules by which they may overtake each other.
//
// An operation X may be passed on when no update that was posted before a fence which came before X, to the same PE, is
// still held. That is all the contract promises; everything else is shuffled.

using Random = std::mt19937_64;

// Calls are serialised by the owner.
class HeldQueue {
public:
    HeldQueue(Transport& inner, std::uint64_t number, bool reorder)
        : inner_(&inner), number_(number), reorder_(reorder) {}

    // At most this many are held; then there is no room.
    static constexpr std::size_t room = 256;
    [[nodiscard]] bool full() const { return held_.size() >= room; }
    [[nodiscard]] std::size_t held() const { return held_.size(); }

    // Takes the operation; returns its token.
    std::uint64_t hold(HeldOperation operation);
    void fence() { ++epoch_; }

    // One step of time: passes on what is due, in random order as far as the rules allow. An operation that the inner
    // transport refuses is gone, and its failure is kept for test and quiet. True when anything was passed on.
    bool step(Random& random);
    // Code::ok when everything held has been passed on and is complete. A failure is reported once.
    Code quiet();
    // The same of one operation.
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
    std::vector<HeldOperation> held_;                   // in the order of posting
    std::map<std::uint64_t, std::uint64_t> in_flight_;  // our token → the inner one's, not known to be complete
    std::map<std::uint64_t, Code> failed_;              // by token, until reported
    std::map<int, std::uint64_t> updated_since_fence_;  // PE → oldest epoch of an update passed on since inner fence
};

}  // namespace npushmem::fault
