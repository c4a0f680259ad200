// SPDX-License-Identifier: BSD-3-Clause
// The fabric of members behind a transport: an interface with one virtual call per operation. The concept Fabric in
// schedule.hpp defines each function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/wait.hpp"
#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

// Describes a failed wait of a fabric.
struct FabricFailure {
    AwaitedSlot awaited;
    std::uint64_t expected = 0;
    std::uint64_t seen = 0;
    WaitFailure wait;
};

// Identifies a barrier in messages.
struct BarrierIdentity {
    std::string_view team;  // "world"
    std::string_view algorithm;
    PeRange members;  // world PEs by team index
    int index = 0;    // the caller's index
};

// Returns "barrier of team world (4 PEs, algorithm tree, call 7) at PE 2, round 1: waited 0.500 s for the signal from
// PE 3: ..."
std::string describe(const BarrierIdentity& call, const FabricFailure& failure);

class SignalFabric {
public:
    SignalFabric() = default;
    SignalFabric(const SignalFabric&) = delete;
    SignalFabric& operator=(const SignalFabric&) = delete;
    virtual ~SignalFabric() = default;

    virtual Code signal(int member, int slot, std::uint64_t value) = 0;
    virtual Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) = 0;
    // Waits until a slot, this member's or another's, has reached the value; uses a Waiter that drives the transport.
    virtual Code wait(const AwaitedSlot& awaited, std::uint64_t value) = 0;
    // Waits until all signals have arrived.
    virtual Code complete() = 0;
    [[nodiscard]] virtual bool polls_peers() const { return false; }
    // Describes the last failed wait.
    [[nodiscard]] virtual FabricFailure failure() const = 0;
};

// A copyable handle for Barrier. The fabric must outlive it.
class SignalFabricRef {
public:
    explicit SignalFabricRef(SignalFabric& fabric) : fabric_(&fabric) {}

    Code signal(int member, int slot, std::uint64_t value) { return fabric_->signal(member, slot, value); }
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
        return fabric_->add(member, slot, value, before);
    }
    Code wait(const AwaitedSlot& awaited, std::uint64_t value) { return fabric_->wait(awaited, value); }
    Code complete() { return fabric_->complete(); }
    [[nodiscard]] bool polls_peers() const { return fabric_->polls_peers(); }
    [[nodiscard]] FabricFailure failure() const { return fabric_->failure(); }

private:
    SignalFabric* fabric_;
};

}  // namespace npushmem::barrier
