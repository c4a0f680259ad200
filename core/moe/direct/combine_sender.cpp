// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/direct/combine_sender.hpp"

#include <algorithm>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/nontemporal_copy.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "core/moe/common/staged_sums.hpp"

namespace npushmem::moe {

namespace {

using npu::Core;
using npu::Pipe;

bool is_host_served(const CombineSend& send, std::int32_t rank) {
    return send.host_served != nullptr && send.host_served[rank] != 0;
}

std::uint32_t slot_of(Core& core, const CombineSend& send, std::uint64_t row) { return core.load(send.slots + row); }

const std::byte* row_address(const CombineSend& send, std::uint64_t row) {
    return send.x + bytes_of(Rows{row}, send.layout.row_bytes()).value();
}

// Computes the rows of a fragment of send.computed; target(row) is the address of the result.
template <class Target>
void compute_each(Core& core, const CombineSend& send, Fragment fragment, const Target& target) {
    const ComputedRows& computed = send.computed;
    const std::uint64_t begin = fragment.first.value();
    const std::uint64_t end = (fragment.first + fragment.count).value();
    const auto address = [&](std::uint64_t row) { return send.x + bytes_of(Rows{row}, computed.x_row).value(); };
    if (computed.first == nullptr) {
        for (std::uint64_t row = begin; row < end; ++row) {
            if (send.slots[row] != no_slot) computed.quantize(computed.narrow, address(row), target(row));
        }
        return;
    }
    const auto gather = [&](std::uint64_t row, WeightedRows& rows) {
        for (std::uint64_t i = computed.first[row]; i < computed.first[row + 1]; ++i) {
            rows.add(address(computed.parts[i]), computed.weights[computed.parts[i]]);
        }
    };
    if (computed.sum.staged) return staged_sums(core, computed.sum, begin, end, gather, target);
    if (computed.quantize == nullptr)
        return reduce_each(computed.sum, begin, end, gather, target, [](std::uint64_t) {});
    float* const floats = computed.floats + static_cast<std::size_t>(core.index()) * computed.narrow.hidden();
    reduce_each(
        computed.sum, begin, end, gather, [&](std::uint64_t) { return floats; },
        [&](std::uint64_t row) { computed.quantize(computed.narrow, floats, target(row)); });
}

// The copy routes. Each gets put() for every fragment of one destination, and then finish().
class DirectRows {
public:
    DirectRows(Core& core, const CombineSend& send, int destination)
        : core_(core), send_(send), destination_(destination) {}

    void put(Fragment fragment) {
        const std::uint64_t end = fragment.first.value() + fragment.count.value();
        for (std::uint64_t row = fragment.first.value(); row < end; ++row) put_row(row);
    }
    // All copies out are complete before the scalar pipe sets the signal.
    void finish() {
        core_.set_flag<Pipe::copy_out, Pipe::scalar>(0);
        core_.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
    }

private:
    void put_row(std::uint64_t row) {
        const Bytes slot = send_.layout.slot(send_.epoch, slot_of(core_, send_, row));
        core_.put(send_.region + slot.value(), row_address(send_, row), send_.layout.row_bytes().value(), destination_);
    }

    Core& core_;
    const CombineSend& send_;
    int destination_;
};

class StreamingRows {
public:
    StreamingRows(Core& core, const CombineSend& send, int destination)
        : core_(core), send_(send), remote_(core.remote(send.region, destination)) {}

    void put(Fragment fragment) {
        const std::uint64_t end = fragment.first.value() + fragment.count.value();
        for (std::uint64_t row = fragment.first.value(); row < end; ++row) {
            const Bytes slot = send_.layout.slot(send_.epoch, slot_of(core_, send_, row));
            copy_nontemporal(remote_ + slot.value(), row_address(send_, row), send_.layout.row_bytes().value());
        }
    }
    // Streaming stores are unordered: even a release store of the signal could overtake them.
    static void finish() { nontemporal_fence(); }

private:
    Core& core_;
    const CombineSend& send_;
    std::byte* remote_;
};

// Computes rows where they go, without a copy.
class ComputedRoute {
public:
    ComputedRoute(Core& core, const CombineSend& send, int destination)
        : core_(core), send_(send), remote_(core.remote(send.region, destination)) {}

    void put(Fragment fragment) {
        compute_each(core_, send_, fragment, [&](std::uint64_t row) {
            return remote_ + send_.layout.slot(send_.epoch, slot_of(core_, send_, row)).value();
        });
    }
    void finish() {
        if (send_.computed.sum.shape.streaming) nontemporal_fence();
    }

private:
    Core& core_;
    const CombineSend& send_;
    std::byte* remote_;
};

// Copies rows to their slots through two staging buffers, so that the next read overlaps the last write. Rows of a
// fragment are contiguous in x, so one copy reads many short rows; each row is written to its own slot.
class StagedRows {
public:
    static constexpr std::size_t buffer_bytes = 32 * 1024;

    StagedRows(Core& core, const CombineSend& send, int destination);

    void put(Fragment fragment);
    // Waits until all copies out are complete, also for the scalar pipe that sets the signal.
    void finish() { buffers_.finish(); }

private:
    void put_batch(std::uint64_t first, std::size_t rows);
    void put_long_row(std::uint64_t row);
    void fill(const std::byte* source, std::size_t rows, std::size_t bytes);
    void drain(std::size_t offset, std::uint32_t slot, std::size_t begin, std::size_t bytes);

    Core& core_;
    const CombineSend& send_;
    std::byte* remote_;
    StagingBuffers buffers_;
};

StagedRows::StagedRows(Core& core, const CombineSend& send, int destination)
    : core_(core), send_(send), remote_(core.remote(send.region, destination)), buffers_(core, buffer_bytes) {}

void StagedRows::put(Fragment fragment) {
    const std::size_t in_buffer = buffer_bytes / aligned_up(send_.layout.row_bytes(), npu::ub_alignment).value();
    const std::uint64_t end = fragment.first.value() + fragment.count.value();
    std::uint64_t row = fragment.first.value();
    while (row < end) {
        if (in_buffer == 0) {
            put_long_row(row++);
            continue;
        }
        const std::size_t rows = std::min({end - row, std::uint64_t{in_buffer}, std::uint64_t{npu::max_copy_blocks}});
        put_batch(row, rows);
        row += rows;
    }
}

void StagedRows::put_batch(std::uint64_t first, std::size_t rows) {
    const Bytes row = send_.layout.row_bytes();
    const std::size_t step = aligned_up(row, npu::ub_alignment).value();
    fill(send_.x + bytes_of(Rows{first}, row).value(), rows, row.value());
    for (std::size_t i = 0; i < rows; ++i) drain(i * step, core_.load(send_.slots + first + i), 0, row.value());
    buffers_.next();
}

void StagedRows::put_long_row(std::uint64_t row) {
    const std::size_t bytes = send_.layout.row_bytes().value();
    const std::byte* source = send_.x + bytes_of(Rows{row}, send_.layout.row_bytes()).value();
    const std::uint32_t slot = core_.load(send_.slots + row);
    for (std::size_t done = 0; done < bytes; done += buffer_bytes) {
        const std::size_t piece = std::min(buffer_bytes, bytes - done);
        fill(source + done, 1, piece);
        drain(0, slot, done, piece);
        buffers_.next();
    }
}

void StagedRows::fill(const std::byte* source, std::size_t rows, std::size_t bytes) {
    buffers_.wait_until_free();
    core_.data_copy_pad(buffers_.current(), npu::gm(source, rows * bytes), npu::PadShape{rows, bytes, 0, 0});
    buffers_.filled();
}

void StagedRows::drain(std::size_t offset, std::uint32_t slot, std::size_t begin, std::size_t bytes) {
    std::byte* target = remote_ + send_.layout.slot(send_.epoch, slot).value() + begin;
    core_.data_copy_pad(npu::gm(target, bytes), buffers_.current().from(offset), npu::PadShape{1, bytes, 0, 0});
}

void count_arrivals(Core& core, const CombineSend& send, Fragment fragment, int destination) {
    if (send.arrivals == nullptr) return;
    std::uint64_t* counters = send.arrivals + (send.epoch & 1U) * send.layout.slots().value();
    const std::uint64_t end = fragment.first.value() + fragment.count.value();
    for (std::uint64_t row = fragment.first.value(); row < end; ++row) {
        core.atomic_fetch_add(core.remote(counters + slot_of(core, send, row), destination), 1);
    }
}

template <class Route>
void send_rows(Core& core, const CombineSend& send, int destination, const Share& share) {
    const std::size_t mark = core.ub_used();
    {
        Route route(core, send, destination);
        const FragmentTables tables{send.offset_table, send.length_table, send.num_local_experts, send.num_ranks};
        TableColumns columns(core, tables, destination);
        for (std::int32_t expert = 0; expert < send.num_local_experts; ++expert) {
            const Fragment fragment = share.of(columns.fragment(expert), expert);
            if (fragment.count == Rows{0}) continue;
            route.put(fragment);
            count_arrivals(core, send, fragment, destination);
        }
        route.finish();
    }
    core.ub_release(mark);
}

void copy_to(Core& core, const CombineSend& send, int destination, const Share& share) {
    if (send.computed.any()) return send_rows<ComputedRoute>(core, send, destination, share);
    switch (send.route) {
        case CopyRoute::staged: return send_rows<StagedRows>(core, send, destination, share);
        case CopyRoute::direct: return send_rows<DirectRows>(core, send, destination, share);
        case CopyRoute::streaming: return send_rows<StreamingRows>(core, send, destination, share);
    }
}

void announce(Core& core, const CombineSend& send, int destination) {
    if (send.in_place.memory.exists()) put_offer(core, send.in_place, send.epoch, destination);
    core.signal_set_on(own_signal(send, core.my_pe()), send.epoch, destination);
}

}  // namespace

CombineSend send_from(const CombinePlan& plan, const SlotLayout& layout) {
    CombineSend send;
    send.offset_table = plan.offset_table.data();
    send.length_table = plan.length_table.data();
    send.slots = plan.slots.data();
    send.num_local_experts = plan.local_experts;
    send.num_ranks = plan.ranks;
    send.layout = layout;
    return send;
}

void compute_rows(Core& core, const CombineSend& send, Fragment fragment, std::byte* target, std::size_t step) {
    compute_each(core, send, fragment,
                 [&](std::uint64_t row) { return target + (row - fragment.first.value()) * step; });
}

void moe_combine_compute_rows(Core& core, const CombineSend& send, std::uint64_t rows, std::byte* target) {
    const auto cores = static_cast<std::uint64_t>(core.count());
    const auto index = static_cast<std::uint64_t>(core.index());
    const std::uint64_t first = rows * index / cores;
    const std::size_t row = send.layout.row_bytes().value();
    compute_rows(core, send, {Rows{first}, Rows{rows * (index + 1) / cores - first}}, target + first * row, row);
}

std::uint64_t* own_signal(const CombineSend& send, int rank) {
    return reinterpret_cast<std::uint64_t*>(send.region + send.layout.signal(rank).value());
}

void moe_combine_direct_sender(Core& core, const CombineSend& send) {
    send_to_all(
        core, send.num_ranks, send.route,
        [&](std::int32_t rank, const Share& share) {
            if (!is_host_served(send, rank) && !send.in_place.is_offered()) copy_to(core, send, rank, share);
        },
        [&](std::int32_t rank) {
            if (!is_host_served(send, rank)) announce(core, send, rank);
        });
}

void moe_combine_signal_abort(Core& core, const CombineSend& send) {
    for (std::int32_t rank = core.index(); rank < send.num_ranks; rank += core.count()) {
        if (is_host_served(send, rank)) continue;
        core.signal_add_on(own_signal(send, core.my_pe()), abort_bit, rank);
        if (!send.in_place.memory.exists()) continue;
        const InPlaceMemory& memory = send.in_place.memory;
        core.signal_add_on(memory.word(memory.layout.read(core.my_pe())), abort_bit, rank);
    }
}

namespace {

// Calls visit(rank) for the ranks that the host serves, starting after this one.
template <class Visit>
void for_each_host_served(SymmetricMemory& memory, const CombineSend& send, const Visit& visit) {
    for (std::int32_t i = 1; i <= send.num_ranks; ++i) {
        const std::int32_t rank = (memory.my_pe() + i) % send.num_ranks;
        if (send.host_served[rank] != 0) visit(rank);
    }
}

void put_row(SymmetricMemory& memory, const CombineSend& send, std::uint64_t row, int rank) {
    const std::uint32_t slot = send.slots[row];
    const Bytes size = send.layout.row_bytes();
    memory.put(send.region + send.layout.slot(send.epoch, slot).value(), send.x + bytes_of(Rows{row}, size).value(),
               size, rank);
    if (send.arrivals == nullptr) return;
    memory.add(send.arrivals + (send.epoch & 1U) * send.layout.slots().value() + slot, 1, rank);
}

void put_rows(SymmetricMemory& memory, const CombineSend& send, int rank) {
    for (std::int32_t expert = 0; expert < send.num_local_experts; ++expert) {
        const auto entry = static_cast<std::size_t>(expert) * static_cast<std::size_t>(send.num_ranks) +
                           static_cast<std::size_t>(rank);
        const auto first = static_cast<std::uint64_t>(send.offset_table[entry]);
        const auto count = static_cast<std::uint64_t>(send.length_table[entry]);
        for (std::uint64_t row = first; row < first + count; ++row) put_row(memory, send, row, rank);
    }
}

}  // namespace

void send_remote_rows(SymmetricMemory& memory, const CombineSend& send) {
    for_each_host_served(memory, send, [&](int rank) { put_rows(memory, send, rank); });
    memory.fence();
    for_each_host_served(memory, send,
                         [&](int rank) { memory.signal(own_signal(send, memory.my_pe()), send.epoch, rank); });
}

void signal_abort_remotely(SymmetricMemory& memory, const CombineSend& send) {
    // Ordered behind the puts of a failed call.
    memory.fence();
    for_each_host_served(memory, send,
                         [&](int rank) { memory.add(own_signal(send, memory.my_pe()), abort_bit, rank); });
}

}  // namespace npushmem::moe
