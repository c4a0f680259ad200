// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows through the unified buffer of a core: the staging buffers, the table columns, and the packing copy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/moe/common/combine_plan.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// One core's part of the rows for a destination.
struct Share {
    std::int32_t index = 0;
    std::int32_t count = 1;

    // The parts rotate with the expert, so that fragments with fewer rows than parts do not all fall to the same cores.
    [[nodiscard]] Fragment of(Fragment whole, std::int32_t expert) const {
        if (count == 1) return whole;
        const auto part = static_cast<std::uint64_t>((index + expert) % count);
        const auto parts = static_cast<std::uint64_t>(count);
        const std::uint64_t begin = whole.count.value() * part / parts;
        const std::uint64_t end = whole.count.value() * (part + 1) / parts;
        return {whole.first + Rows{begin}, Rows{end - begin}};
    }
    // True on one core of those that share the expert's rows.
    [[nodiscard]] bool is_first(std::int32_t expert) const { return count == 1 || (index + expert) % count == 0; }
};

// Sends to all ranks: copy(rank, share) sends a core's share of the rows for a rank, and its copies out are complete
// when it returns; announce(rank) follows for each rank, on one core, when all shares are sent. PEs begin with
// different ranks. In route staged, cores share destinations if there are more cores than ranks: on a device a core's
// pipe is slower than the path to the destination, in ordinary memory it is not.
template <class Copy, class Announce>
void send_to_all(npu::Core& core, std::int32_t ranks, CopyRoute route, const Copy& copy, const Announce& announce) {
    const std::int32_t cores = route == CopyRoute::staged ? core.count() / ranks : 1;
    if (cores <= 1) {
        for (std::int32_t i = core.index(); i < ranks; i += core.count()) {
            const std::int32_t rank = (core.my_pe() + 1 + i) % ranks;
            copy(rank, Share{});
            announce(rank);
        }
        return;
    }
    const std::int32_t rank = (core.my_pe() + 1 + core.index()) % ranks;
    const Share share{core.index() / ranks, cores};
    if (share.index < cores) copy(rank, share);
    core.core_barrier();
    if (share.index == 0) announce(rank);
}

// Two buffers in the unified buffer of a core. One pipe fills one buffer while another pipe writes out the other.
class StagingBuffers {
public:
    StagingBuffers(npu::Core& core, std::size_t bytes)
        : core_(core), buffers_{core.ub_alloc<std::byte>(bytes), core.ub_alloc<std::byte>(bytes)} {}

    [[nodiscard]] const npu::ub_view<std::byte>& current() const { return buffers_[current_]; }

    // Waits for the last copies out of the current buffer. Call it before the first copy into it.
    void wait_until_free() { wait_until_free(current_); }
    // Call it between the copies into the current buffer and the copies out of it.
    void filled();
    // Makes the other buffer current. Call it after the last copy out of the current one.
    void next();
    // Waits until all copies out are complete, also for the scalar pipe.
    void finish();

private:
    // Flag ids 0 and 1 belong to the two buffers; the table columns and the end use others.
    static constexpr int end_flag = 2;

    void wait_until_free(int buffer);

    npu::Core& core_;
    std::array<npu::ub_view<std::byte>, 2> buffers_;
    std::array<bool, 2> busy_{};  // its last copies out may still run
    int current_ = 0;
};

// The offset and length tables of a kernel.

// Row-major [num_local_experts, num_ranks], as in combine_plan.hpp.
struct FragmentTables {
    const std::int32_t* offsets = nullptr;
    const std::int32_t* lengths = nullptr;
    std::int32_t num_local_experts = 0;
    std::int32_t num_ranks = 0;
};

// One destination's columns of the two tables. Strided copies fetch them into the unified buffer, so that the send loop
// does not read a row-major table four bytes at a time. They are fetched in batches, so that any number of experts
// works.
class TableColumns {
public:
    static constexpr std::int32_t batch = 256;

    TableColumns(npu::Core& core, const FragmentTables& tables, std::int32_t rank)
        : core_(core),
          tables_(tables),
          rank_(rank),
          offsets_(core.ub_alloc<std::int32_t>(step * batch)),
          lengths_(core.ub_alloc<std::int32_t>(step * batch)) {}

    // Call it with ascending experts.
    Fragment fragment(std::int32_t expert) {
        if (expert % batch == 0) fetch(expert);
        const auto at = static_cast<std::size_t>(expert % batch) * step;
        return {Rows{static_cast<std::uint64_t>(core_.get(offsets_, at))},
                Rows{static_cast<std::uint64_t>(core_.get(lengths_, at))}};
    }

private:
    // A padded copy puts each block on a 32-byte boundary: one entry every eight words.
    static constexpr std::size_t step = npu::ub_alignment / sizeof(std::int32_t);

    void fetch(std::int32_t first) {
        const auto blocks = static_cast<std::size_t>(std::min(batch, tables_.num_local_experts - first));
        copy(offsets_, tables_.offsets, first, blocks);
        copy(lengths_, tables_.lengths, first, blocks);
        core_.set_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(1);
        core_.wait_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(1);
    }

    void copy(npu::ub_view<std::int32_t> column, const std::int32_t* table, std::int32_t first, std::size_t blocks) {
        const auto ranks = static_cast<std::size_t>(tables_.num_ranks);
        const std::int32_t* begin = table + static_cast<std::size_t>(first) * ranks + static_cast<std::size_t>(rank_);
        const npu::PadShape shape{blocks, sizeof(std::int32_t), (ranks - 1) * sizeof(std::int32_t), 0};
        core_.data_copy_pad(column, npu::gm(begin, (blocks - 1) * ranks + 1), shape);
    }

    npu::Core& core_;
    FragmentTables tables_;
    std::int32_t rank_;
    npu::ub_view<std::int32_t> offsets_;
    npu::ub_view<std::int32_t> lengths_;
};

// Copies scattered rows into contiguous memory through two staging buffers.
//
// Rows of whole 32-byte units lie in a buffer without gaps, and one plain copy writes them out. Other rows each begin
// on a 32-byte boundary, where a copy into the unified buffer must begin. One padded copy writes exactly the bytes of
// each, so nothing is written behind the end.

class StagedPack {
public:
    static constexpr std::size_t buffer_bytes = 64 * 1024;

    // `target`: where the first row goes.
    StagedPack(npu::Core& core, const std::byte* x, Bytes row, std::byte* target);

    void put(Fragment fragment);
    // Where the next row goes.
    void continue_at(std::byte* target);
    // Waits until all rows are in place, also for the scalar pipe.
    void finish();

private:
    void put_long_row(const std::byte* source);
    void fill(const std::byte* source, std::size_t rows, std::size_t bytes);
    void flush(std::size_t bytes);

    npu::Core& core_;
    const std::byte* x_;
    std::size_t row_;
    std::size_t step_;       // from row to row in a buffer
    std::size_t in_buffer_;  // most rows; 0: a row is longer than a buffer
    std::byte* target_;
    StagingBuffers buffers_;
    std::size_t staged_ = 0;  // rows in the current buffer
};

}  // namespace npushmem::moe
