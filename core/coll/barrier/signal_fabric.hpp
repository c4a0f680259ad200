// The fabric of members behind a transport, as an interface: what a schedule needs, one virtual call each. See the
// concept Fabric in schedule.hpp for what each function promises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/wait.hpp"
#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

// Why a fabric's wait ended without its signal, and the sentence about it.

struct FabricFailure {
    AwaitedSlot awaited;
    std::uint64_t expected = 0;
    std::uint64_t seen = 0;
    WaitFailure wait;
};

// Which barrier it was.
struct BarrierIdentity {
    std::string_view team;  // "world"
    std::string_view algorithm;
    PeRange members;  // world PEs by team index
    int index = 0;    // of the caller
};

// "barrier of team world (4 PEs, algorithm tree, call 7) at PE 2, round 1: waited 0.500 s for the signal of PE 3: ..."
std::string describe(const BarrierIdentity& call, const FabricFailure& failure);

class SignalFabric {
public:
    SignalFabric() = default;
    SignalFabric(const SignalFabric&) = delete;
    SignalFabric& operator=(const SignalFabric&) = delete;
    virtual ~SignalFabric() = default;

    virtual Code signal(int member, int slot, std::uint64_t value) = 0;
    virtual Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) = 0;
    // Until a slot, the own one or another member's, has been reached; through a Waiter that drives the transport.
    virtual Code wait(const AwaitedSlot& awaited, std::uint64_t value) = 0;
    // Until all signals have landed.
    virtual Code complete() = 0;
    [[nodiscard]] virtual bool polls_peers() const { return false; }
    // Of the last wait that failed.
    [[nodiscard]] virtual FabricFailure failure() const = 0;
};

// What Barrier holds of it: a copyable handle. The fabric must outlive it.
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
