// SPDX-License-Identifier: BSD-3-Clause
// Kernels that send words through rings and receive them: core 0 of each PE sends, core 1 receives, like the operators
// of this library, but with other sources and targets of the bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/moe/ring/core_ring.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe::ring_test {

using npu::Core;
using npu::Pipe;

// A step to omit, so that the checker must report it.
enum class Dropped { nothing, gather_flag, tail_fence, read_flag, head_dcci };

// Lengths in bytes by [source][destination], of batch after batch.
using Script = std::vector<std::vector<std::vector<std::uint64_t>>>;

struct Exchange {
    RingMemory memory;
    const std::byte* x = nullptr;  // what this PE sends, destination after destination; symmetric or not
    std::byte* out = nullptr;      // what it receives, source after source
    const Script* script = nullptr;
    Dropped dropped = Dropped::nothing;
};

// Publishes the tail without ordering it behind the copies and the previous tail.
class UnfencedSenderPort : public CoreRingSenderPort {
public:
    UnfencedSenderPort(Core& core, const RingMemory& memory, int destination)
        : CoreRingSenderPort(core, memory, destination),
          core_(core),
          tail_(core.remote(memory.word(memory.layout.tail(core.my_pe())), destination)) {}
    void commit(std::uint64_t tail) { core_.signal_set(tail_, tail); }

private:
    Core& core_;
    std::uint64_t* tail_;
};

// Reads the head as if the core's cache were coherent, until it has the value.
class CachedHeadPort : public CoreRingSenderPort {
public:
    CachedHeadPort(Core& core, const RingMemory& memory, int destination)
        : CoreRingSenderPort(core, memory, destination),
          core_(core),
          head_(memory.word(memory.layout.head(destination))) {}
    std::uint64_t head() { return core_.load(head_); }
    Result<std::uint64_t> await_head(std::uint64_t position) {
        for (int turn = 0; turn < 1000; ++turn) {
            if (head() >= position) return head();
            core_.yield();
        }
        return Status{Code::timeout, "no longer than 1000 turns"};
    }

private:
    Core& core_;
    const std::uint64_t* head_;
};

// Publishes the head while copies out of the ring may still run.
class UnflaggedReceiverPort : public CoreRingReceiverPort {
public:
    UnflaggedReceiverPort(Core& core, const RingMemory& memory, int source, int flag)
        : CoreRingReceiverPort(core, memory, source, flag),
          core_(core),
          head_(core.remote(memory.word(memory.layout.head(core.my_pe())), source)) {}
    void release(std::uint64_t head) { core_.signal_set(head_, head); }

private:
    Core& core_;
    std::uint64_t* head_;
};

inline std::uint64_t total(const std::vector<std::uint64_t>& batches) {
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : batches) sum += bytes;
    return sum;
}

// Two buffers: one is filled while the other is sent. A buffer is filled again only after its commit.
template <class Port>
void send_one(Core& core, const Exchange& work, int destination, const std::byte* x) {
    const RingShape& shape = work.memory.layout.shape();
    const std::size_t mark = core.ub_used();
    const std::array buffers{core.ub_alloc<std::byte>(shape.batch.value()),
                             core.ub_alloc<std::byte>(shape.batch.value())};
    std::uint64_t* line = work.memory.word(work.memory.layout.sender_state(destination));
    auto state = load_state<RingSenderState>(core, line);
    Port port(core, work.memory, destination);
    RingSender sender(port, shape, {core.my_pe(), destination}, state);
    std::size_t at = 0;
    for (const std::uint64_t bytes : (*work.script)[core.my_pe()][destination]) {
        core.data_copy(buffers[at], npu::gm(x, bytes), bytes);
        if (work.dropped != Dropped::gather_flag) core.set_flag<Pipe::copy_in, Pipe::copy_out>(0);
        sender.commit();
        sender.prefetch_head(Bytes{bytes});
        if (const Status s = sender.reserve(Bytes{bytes}); !s.ok()) throw npu::KernelError(s);
        if (work.dropped != Dropped::gather_flag) core.wait_flag<Pipe::copy_in, Pipe::copy_out>(0);
        port.stage(buffers[at]);
        sender.write(Bytes{bytes});
        at ^= 1;
        x += bytes;
    }
    sender.commit();
    store_state(core, line, state);
    core.ub_release(mark);
}

template <class Port>
void receive_one(Core& core, const Exchange& work, int source, std::byte* out) {
    const RingShape& shape = work.memory.layout.shape();
    const std::size_t mark = core.ub_used();
    const auto buffer = core.ub_alloc<std::byte>(shape.size.value());
    std::uint64_t* line = work.memory.word(work.memory.layout.receiver_state(source));
    auto state = load_state<RingReceiverState>(core, line);
    Port port(core, work.memory, source, 1);
    RingReceiver receiver(port, shape, {core.my_pe(), source}, state);
    for (std::uint64_t left = total((*work.script)[source][core.my_pe()]); left > 0;) {
        const Result<Bytes> there = receiver.await(Bytes{left});
        if (!there.ok()) throw npu::KernelError(there.status());
        const std::uint64_t bytes = there.value().value();
        receiver.pieces(there.value(), [&](const RingPiece& piece) {
            core.data_copy(buffer.from(piece.from), port.at(piece), piece.bytes);
        });
        core.set_flag<Pipe::copy_in, Pipe::copy_out>(0);
        core.wait_flag<Pipe::copy_in, Pipe::copy_out>(0);
        core.data_copy(npu::gm(out, bytes), buffer, bytes);
        core.set_flag<Pipe::copy_out, Pipe::copy_in>(0);
        core.wait_flag<Pipe::copy_out, Pipe::copy_in>(0);
        receiver.take(there.value());
        out += bytes;
        left -= bytes;
    }
    receiver.publish_head();
    store_state(core, line, state);
    core.ub_release(mark);
}

inline void send_to(Core& core, const Exchange& work, int destination, const std::byte* x) {
    if (work.dropped == Dropped::tail_fence) return send_one<UnfencedSenderPort>(core, work, destination, x);
    if (work.dropped == Dropped::head_dcci) return send_one<CachedHeadPort>(core, work, destination, x);
    send_one<CoreRingSenderPort>(core, work, destination, x);
}

inline void receive_from(Core& core, const Exchange& work, int source, std::byte* out) {
    if (work.dropped == Dropped::read_flag) return receive_one<UnflaggedReceiverPort>(core, work, source, out);
    receive_one<CoreRingReceiverPort>(core, work, source, out);
}

// For at least two cores. In step i the sender of p and the receiver of p + 1 + i are partners.
inline void exchange(Core& core, const Exchange& work) {
    const int n = work.memory.layout.ranks();
    for (int i = 0; i < n && core.index() < 2; ++i) {
        const int peer = core.index() == 0 ? (core.my_pe() + 1 + i) % n : (core.my_pe() + 2 * n - 1 - i) % n;
        std::uint64_t before = 0;
        for (int other = 0; other < peer; ++other) {
            before += core.index() == 0 ? total((*work.script)[core.my_pe()][other])
                                        : total((*work.script)[other][core.my_pe()]);
        }
        if (core.index() == 0)
            send_to(core, work, peer, work.x + before);
        else
            receive_from(core, work, peer, work.out + before);
    }
}

}  // namespace npushmem::moe::ring_test
