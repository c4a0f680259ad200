// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/stream/stream_combine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/moe/common/nontemporal_copy.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "core/moe/stream/row_order.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;

// Copies rows from x into the ring, or computes them there.
class RowPort : public CoreRingSenderPort {
public:
    RowPort(Core& core, const StreamCombine& work, int destination)
        : CoreRingSenderPort(core, work.rings, destination),
          core_(core),
          send_(work.send),
          ring_(work.rings.ring_to(core.my_pe(), destination)),
          row_(work.send.layout.row_bytes().value()),
          step_(ring_step(work.send.layout.row_bytes()).value()),
          holder_(work.rings.holder_to(core.my_pe(), destination)) {}

    // Sets the rows for the next write.
    void stage(std::uint64_t first) { first_ = first; }

    void copy(const RingPiece& piece) {
        const Rows first{first_ + piece.from / step_};
        const std::uint64_t rows = piece.bytes / step_;
        if (send_.computed.any())
            return compute_rows(core_, send_, {first, Rows{rows}}, core_.remote(ring_ + piece.at, holder_), step_);
        const std::byte* source = send_.x + bytes_of(first, Bytes{row_}).value();
        if (row_ == step_) return core_.put(ring_ + piece.at, source, piece.bytes, holder_);
        for (std::uint64_t i = 0; i < rows; ++i) {
            core_.put(ring_ + piece.at + i * step_, source + i * row_, row_, holder_);
        }
    }

private:
    Core& core_;
    const CombineSend& send_;
    std::byte* ring_;
    std::uint64_t first_ = 0;
    std::uint64_t row_;
    std::uint64_t step_;
    int holder_;
};
static_assert(RingSenderPort<RowPort>);

[[noreturn]] void fail(const StreamCombine& work, const Status& status) {
    throw npu::KernelError(status.within(fmt::format("combine, call {}", work.send.epoch)));
}

FragmentTables tables_of(const CombineSend& send) {
    return {send.offset_table, send.length_table, send.num_local_experts, send.num_ranks};
}

// Sends one destination's rows, batch after batch. It reserves a whole batch before it copies the first row, and
// commits after the last one, so a sender that waits for room has no uncommitted rows.
class RowSender {
public:
    RowSender(Core& core, const StreamCombine& work, int destination, Rows rows, RingSenderState& state)
        : work_(work),
          port_(core, work, destination),
          ring_(port_, work.rings.layout.shape(), {core.my_pe(), destination}, state),
          step_(ring_step(work.send.layout.row_bytes()).value()),
          in_batch_(work.rings.layout.shape().batch.value() / step_),
          left_(rows.value()) {}

    void put(Fragment fragment) {
        std::uint64_t row = fragment.first.value();
        const std::uint64_t end = row + fragment.count.value();
        while (row < end) {
            if (reserved_ == 0) begin_batch();
            const std::uint64_t rows = std::min(end - row, reserved_);
            port_.stage(row);
            ring_.write(Bytes{rows * step_});
            row += rows;
            left_ -= rows;
            reserved_ -= rows;
            if (reserved_ == 0) end_batch();
        }
    }

private:
    [[nodiscard]] std::uint64_t next_batch() const { return std::min(left_, in_batch_); }

    void begin_batch() {
        reserved_ = next_batch();
        if (const Status s = ring_.reserve(Bytes{reserved_ * step_}); !s.ok()) fail(work_, s);
    }
    void end_batch() {
        // Runs while the last copies are in flight.
        if (left_ > 0) ring_.prefetch_head(Bytes{next_batch() * step_});
        ring_.commit();
    }

    const StreamCombine& work_;
    RowPort port_;
    RingSender<RowPort> ring_;
    std::uint64_t step_;
    std::uint64_t in_batch_;
    std::uint64_t left_;          // rows that are not yet written
    std::uint64_t reserved_ = 0;  // of these, rows with reserved room
};

// The first row of the fragment whose slot is not below `slot`; slots ascend inside a fragment.
std::uint64_t first_row_from(Core& core, const StreamCombine& work, Fragment fragment, std::uint64_t slot) {
    std::uint64_t begin = fragment.first.value();
    std::uint64_t end = begin + fragment.count.value();
    while (begin < end) {
        const std::uint64_t middle = begin + (end - begin) / 2;
        if (core.load(work.send.slots + middle) < slot)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// Calls visit(fragment) for each expert's rows for the destination in a chunk.
template <class Visit>
void for_each_part(Core& core, const StreamCombine& work, int destination, std::uint64_t chunk, const Visit& visit) {
    const std::uint64_t slots = rows_of(work.chunk, static_cast<std::uint32_t>(work.receive.top_k)).value();
    TableColumns columns(core, tables_of(work.send), destination);
    for (std::int32_t e = 0; e < work.send.num_local_experts; ++e) {
        const Fragment fragment = columns.fragment(e);
        if (work.chunks == 1 || fragment.count == Rows{0}) {
            visit(fragment);
            continue;
        }
        const std::uint64_t begin = first_row_from(core, work, fragment, chunk * slots);
        const std::uint64_t end = first_row_from(core, work, fragment, (chunk + 1) * slots);
        visit(Fragment{Rows{begin}, Rows{end - begin}});
    }
}

bool is_host_served(const StreamCombine& work, int rank) {
    return work.send.host_served != nullptr && work.send.host_served[rank] != 0;
}

bool begins_launch(const StreamCombine& work, std::uint64_t chunk) {
    return chunk == 0 || work.send.host_served != nullptr;
}

void send_stream(Core& core, const StreamCombine& work, int destination, std::uint64_t chunk) {
    const std::size_t mark = core.ub_used();
    std::uint64_t* line = work.rings.word(work.rings.layout.sender_state(destination));
    auto state = load_state<RingSenderState>(core, line, begins_launch(work, chunk));
    Rows rows;
    for_each_part(core, work, destination, chunk, [&](Fragment part) { rows += part.count; });
    core.ub_release(mark);
    RowSender sender(core, work, destination, rows, state);
    for_each_part(core, work, destination, chunk, [&](Fragment part) { sender.put(part); });
    store_state(core, line, state);
    core.ub_release(mark);
}

void place_row(Core& core, const StreamCombine& work, int source, std::uint32_t slot, const std::byte* from) {
    std::byte* to = work.send.region + work.send.layout.slot(work.send.epoch, slot).value();
    const std::uint64_t row = work.send.layout.row_bytes().value();
    const int holder = work.rings.holder_from(core.my_pe(), source);
    if (work.send.route == CopyRoute::streaming) return copy_nontemporal(to, core.remote(from, holder), row);
    if (work.rings.pulls()) return core.get(to, from, row, holder);
    core.put(to, from, row, core.my_pe());
}

// Puts the rows of a piece of the ring into their slots; a nontemporal_fence() must follow in route streaming. Returns
// their number.
std::uint64_t place_rows(Core& core, const StreamCombine& work, int source, const RingPiece& piece,
                         const std::uint32_t* slots) {
    const CombineSend& send = work.send;
    const std::byte* part = work.rings.ring_from(core.my_pe(), source) + piece.at;
    const std::uint64_t step = ring_step(send.layout.row_bytes()).value();
    const std::uint64_t rows = piece.bytes / step;
    for (std::uint64_t i = 0; i < rows; ++i) {
        const std::uint32_t slot = core.load(slots + i);
        place_row(core, work, source, slot, part + i * step);
        if (send.arrivals == nullptr) continue;
        const std::uint64_t counters = (send.epoch & 1U) * send.layout.slots().value();
        core.atomic_fetch_add(send.arrivals + counters + send.layout.in_buffer(slot), 1);
    }
    return rows;
}

void receive_stream(Core& core, const StreamCombine& work, int source, std::uint64_t chunk) {
    std::uint64_t* line = work.rings.word(work.rings.layout.receiver_state(source));
    auto state = load_state<RingReceiverState>(core, line, begins_launch(work, chunk));
    CoreRingReceiverPort port(core, work.rings, source, 0);
    RingReceiver receiver(port, work.rings.layout.shape(), {core.my_pe(), source}, state);
    const std::uint64_t* first = work.first + chunk * static_cast<std::uint64_t>(work.send.num_ranks + 1) + source;
    const std::uint32_t* slots = work.slots + first[0];
    const Rows rows{first[1] - first[0]};
    for (std::uint64_t left = bytes_of(rows, ring_step(work.send.layout.row_bytes())).value(); left > 0;) {
        const Result<Bytes> there = receiver.await(Bytes{left});
        if (!there.ok()) fail(work, there.status());
        receiver.pieces(there.value(),
                        [&](const RingPiece& piece) { slots += place_rows(core, work, source, piece, slots); });
        if (work.send.route == CopyRoute::streaming) nontemporal_fence();
        receiver.take(there.value());
        left -= there.value().value();
    }
    receiver.publish_head();
    store_state(core, line, state);
}

}  // namespace

void moe_combine_exchange(Core& core, const StreamCombine& work, std::uint64_t chunk) {
    const std::int32_t ranks = work.send.num_ranks;
    const bool sends = core.index() % 2 == 0;
    const int cores = sends ? (core.count() + 1) / 2 : core.count() / 2;
    for (std::int32_t i = core.index() / 2; i < ranks; i += cores) {
        const int peer = sends ? (core.my_pe() + 1 + i) % ranks : (core.my_pe() + 2 * ranks - 1 - i) % ranks;
        if (is_host_served(work, peer)) continue;
        if (sends)
            send_stream(core, work, peer, chunk);
        else
            receive_stream(core, work, peer, chunk);
    }
}

void moe_combine_reduce(Core& core, const StreamCombine& work, std::uint64_t chunk) {
    const std::uint64_t all = work.receive.tokens.value();
    const std::uint64_t begin = std::min(all, chunk * work.chunk.value());
    const std::uint64_t end = work.chunks == 1 ? all : std::min(all, begin + work.chunk.value());
    reduce_share(core, work.receive, {Tokens{begin}, Tokens{end}});
}

void moe_combine_stream(Core& core, const StreamCombine& work) {
    for (std::uint64_t chunk = 0; chunk < work.chunks; ++chunk) {
        moe_combine_exchange(core, work, chunk);
        core.core_barrier();
        moe_combine_reduce(core, work, chunk);
        // From here on the slots may be overwritten.
        if (chunk + 1 < work.chunks) core.core_barrier();
    }
}

void moe_stream_signal_abort(Core& core, const StreamCombine& work) {
    for (std::int32_t rank = core.index(); rank < work.rings.layout.ranks(); rank += core.count()) {
        if (is_host_served(work, rank)) continue;
        CoreRingSenderPort(core, work.rings, rank).signal_abort();
        CoreRingReceiverPort(core, work.rings, rank, 0).signal_abort();
    }
}

}  // namespace npushmem::moe
