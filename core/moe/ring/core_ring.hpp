// A ring's ends on one core of the device. A ring belongs to one core at a time; another may have it in the next
// launch.
//
// A fence comes before every store of a tail or head. It waits for this core's copies out, and it keeps the store
// behind the one before it, which must not come last. Where data and tail go to different PEs a fence orders nothing,
// so a tail whose data stays here comes behind a quiet.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/moe/abort_bit.hpp"
#include "core/moe/ring/ring_layout.hpp"
#include "core/moe/ring/ring_receiver.hpp"
#include "core/moe/ring/ring_sender.hpp"
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
    // The ring from `own` to `peer`, or back, as a symmetric address, and the PE whose copy of it counts.
    [[nodiscard]] std::byte* ring_to(int own, int peer) const {
        return region + layout.ring(pulls() ? peer : own).value();
    }
    [[nodiscard]] int holder_to(int own, int peer) const { return pulls() ? own : peer; }
    [[nodiscard]] std::byte* ring_from(int own, int peer) const {
        return region + layout.ring(pulls() ? own : peer).value();
    }
    [[nodiscard]] int holder_from(int own, int peer) const { return pulls() ? peer : own; }
};

// A state of 64-bit words between global memory and the core. Each lies in a line of its own that no other core uses
// meanwhile; the next launch may run on another core, with another cache.
// `stale`: this core's cache may have the line from before another core wrote it; not so after its own store_state in
// this launch.
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

// Sends what lies in the unified buffer.
class CoreRingSenderPort {
public:
    CoreRingSenderPort(npu::Core& core, const RingMemory& memory, int destination)
        : core_(core),
          head_(memory.word(memory.layout.head(destination))),
          remote_tail_(core.remote(memory.word(memory.layout.tail(core.my_pe())), destination)),
          remote_ring_(
              core.remote(memory.ring_to(core.my_pe(), destination), memory.holder_to(core.my_pe(), destination))),
          pulled_(memory.pulls()),
          limit_{memory.timeout, destination} {}

    // The batch that the next write takes. It may be overwritten after the commit.
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

    // Nobody at the destination shall wait for this rank any more.
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

// Receives; whoever uses it reads the ring by copies into the unified buffer.
class CoreRingReceiverPort {
public:
    // `flag`: of copy_in to scalar; this port's alone.
    CoreRingReceiverPort(npu::Core& core, const RingMemory& memory, int source, int flag)
        : core_(core),
          tail_(memory.word(memory.layout.tail(source))),
          remote_head_(core.remote(memory.word(memory.layout.head(core.my_pe())), source)),
          ring_(core.remote(memory.ring_from(core.my_pe(), source), memory.holder_from(core.my_pe(), source))),
          limit_{memory.timeout, source},
          flag_(flag) {}

    // A part of the ring, which pieces() names; of a ring at the sender, in its memory.
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
