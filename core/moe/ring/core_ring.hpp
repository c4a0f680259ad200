// SPDX-License-Identifier: BSD-3-Clause
// A ring's ends on one core of the device. One core uses a ring at a time; another core may use it in the next launch.
//
// A fence precedes every store of a tail or head. It waits for this core's copies out, and it orders the store after
// the previous one. A fence orders nothing between different PEs, so a quiet precedes the tail of a ring whose data
// stays here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/ring/ring_ends.hpp"
#include "core/moe/ring/ring_layout.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// This PE's copy of the rings' symmetric memory.
struct RingMemory {
    std::byte* region = nullptr;
    RingLayout layout{1, {}};
    std::chrono::nanoseconds timeout{0};  // of each wait; 0: the device's

    [[nodiscard]] std::uint64_t* word(Bytes offset) const {
        return reinterpret_cast<std::uint64_t*>(region + offset.value());
    }
    [[nodiscard]] bool pulls() const { return layout.place() == RingPlace::sender; }
    // Symmetric address of the ring from `own` to `peer` (ring_to) or from `peer` to `own` (ring_from), and the PE that
    // holds its data.
    [[nodiscard]] std::byte* ring_to(int own, int peer) const {
        return region + layout.ring(pulls() ? peer : own).value();
    }
    [[nodiscard]] int holder_to(int own, int peer) const { return pulls() ? own : peer; }
    [[nodiscard]] std::byte* ring_from(int own, int peer) const {
        return region + layout.ring(pulls() ? own : peer).value();
    }
    [[nodiscard]] int holder_from(int own, int peer) const { return pulls() ? peer : own; }
};

// Load and store a state of 64-bit words in global memory. Each state has its own line, which no other core uses during
// the launch; the next launch may run on another core, with another cache. `stale`: this core's cache may hold an old
// copy of the line. Pass false after the core's own store_state in this launch.
template <class State>
State load_state(npu::Core& core, const std::uint64_t* line, bool stale = true) {
    static_assert(std::is_trivially_copyable_v<State> && sizeof(State) <= RingLayout::line);
    std::uint64_t words[sizeof(State) / sizeof(std::uint64_t)];
    if (stale) core.dcci(line, sizeof(State));
    for (std::size_t i = 0; i < std::size(words); ++i) words[i] = core.load(line + i);
    State state;
    std::memcpy(&state, words, sizeof state);
    return state;
}

template <class State>
void store_state(npu::Core& core, std::uint64_t* line, const State& state) {
    std::uint64_t words[sizeof(State) / sizeof(std::uint64_t)];
    std::memcpy(words, &state, sizeof state);
    for (std::size_t i = 0; i < std::size(words); ++i) core.store(line + i, words[i]);
    core.dcci(line, sizeof(State));
}

// Sends data from the unified buffer.
class CoreRingSenderPort {
public:
    CoreRingSenderPort(npu::Core& core, const RingMemory& memory, int destination)
        : core_(core),
          head_(memory.word(memory.layout.head(destination))),
          remote_tail_(core.remote(memory.word(memory.layout.tail(core.my_pe())), destination)),
          remote_ring_(
              core.remote(memory.ring_to(core.my_pe(), destination), memory.holder_to(core.my_pe(), destination))),
          pulled_(memory.pulls()),
          limit_(wait_for_rank(core, destination, memory.timeout)) {}

    // Sets the batch for the next write. The batch may be overwritten after the commit.
    void stage(npu::ub_view<const std::byte> batch) { batch_ = batch; }

    std::uint64_t head() { return core_.signal_fetch(head_); }
    Result<std::uint64_t> await_head(std::uint64_t position) {
        return core_.signal_wait_for(head_, npu::Compare::greater_equal, position, limit_);
    }
    void copy(const RingPiece& piece) {
        core_.data_copy(npu::gm(remote_ring_ + piece.at, piece.bytes), batch_.sub(piece.from, piece.bytes),
                        piece.bytes);
    }
    void commit(std::uint64_t tail) {
        if (pulled_)
            core_.quiet();
        else
            core_.fence();
        core_.signal_set(remote_tail_, tail);
    }
    static std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

    // Ends the destination's wait for this rank.
    void signal_abort() { core_.signal_add(remote_tail_, abort_bit); }

private:
    npu::Core& core_;
    const std::uint64_t* head_;
    std::uint64_t* remote_tail_;
    std::byte* remote_ring_;
    bool pulled_;
    npu::WaitLimit limit_;
    npu::ub_view<const std::byte> batch_;
};
static_assert(RingSenderPort<CoreRingSenderPort>);

// Receives. Its user reads the ring by copies into the unified buffer.
class CoreRingReceiverPort {
public:
    // `flag`: a flag id from copy_in to scalar that only this port uses.
    CoreRingReceiverPort(npu::Core& core, const RingMemory& memory, int source, int flag)
        : core_(core),
          tail_(memory.word(memory.layout.tail(source))),
          remote_head_(core.remote(memory.word(memory.layout.head(core.my_pe())), source)),
          ring_(core.remote(memory.ring_from(core.my_pe(), source), memory.holder_from(core.my_pe(), source))),
          limit_(wait_for_rank(core, source, memory.timeout)),
          flag_(flag) {}

    // The memory of a piece that pieces() reports. A ring at the sender lies in the sender's memory.
    [[nodiscard]] npu::gm_view<const std::byte> at(const RingPiece& piece) const {
        return npu::gm<const std::byte>(ring_ + piece.at, piece.bytes);
    }

    std::uint64_t tail() { return core_.signal_fetch(tail_); }
    Result<std::uint64_t> await_tail(std::uint64_t position) {
        return core_.signal_wait_for(tail_, npu::Compare::greater_equal, position, limit_);
    }
    void release(std::uint64_t head) {
        core_.set_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(flag_);
        core_.wait_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(flag_);
        core_.fence();
        core_.signal_set(remote_head_, head);
    }
    static std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

    void signal_abort() { core_.signal_add(remote_head_, abort_bit); }

private:
    npu::Core& core_;
    const std::uint64_t* tail_;
    std::uint64_t* remote_head_;
    const std::byte* ring_;
    npu::WaitLimit limit_;
    int flag_;
};
static_assert(RingReceiverPort<CoreRingReceiverPort>);

}  // namespace npushmem::moe
