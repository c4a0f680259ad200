// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with the unified buffer: alignment, capacity, overlap, contents, and shapes of copies.
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr std::size_t floats_per_tile = 64;
constexpr std::size_t kib = 1024;

// ---- H1 -----------------------------------------------------------------------------------------------------------

// Leaves room for a header of three floats.
void odd_ub_slice(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(2 * floats_per_tile);
    const auto body = tile.from(wrong ? 3 : 8);
    core.data_copy(body, gm(m.floats(), floats_per_tile), floats_per_tile);  // WRONG: odd_ub_slice
}

// The second operand is the same row, one element further.
void neighbour_differences(Core& core, const Memory& m, bool wrong) {
    const auto row = core.ub_alloc<float>(floats_per_tile);
    const auto shifted = core.ub_alloc<float>(floats_per_tile);
    core.data_copy(row, gm(m.floats(), floats_per_tile), floats_per_tile);
    core.data_copy(shifted, gm(m.floats() + 1, floats_per_tile), floats_per_tile);
    order<Pipe::copy_in, Pipe::vector>(core);
    if (wrong)
        core.subtract(row, row.from(1), row, floats_per_tile - 1);  // WRONG: neighbour_differences
    else
        core.subtract(row, shifted, row, floats_per_tile - 1);
}

// Each record is a kind of two bytes and a number; the right one has padding between them.
void packed_records(Core& core, const Memory& m, bool wrong) {
    auto* const record = reinterpret_cast<std::byte*>(m.data);
    auto* const number = reinterpret_cast<float*>(record + (wrong ? 2 : 4));
    const auto tile = core.ub_alloc<float>(8);
    core.data_copy_pad(tile, gm(number, 1), PadShape{.block_bytes = sizeof(float)});  // WRONG: packed_records
}

void strided_rows_at_odd_place(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(4 * floats_per_tile);
    const StridedShape rows{.blocks = 2, .block_units = 8, .source_gap_units = 8};
    core.data_copy(tile.from(wrong ? 2 : 16), gm(m.floats(), 1024), rows);  // WRONG: strided_rows_at_odd_place
}

// Eight halves are 16 bytes only.
void halves_behind_a_header(Core& core, const Memory& m, bool wrong) {
    const auto numbers = core.ub_alloc<float>(floats_per_tile);
    const auto message = core.ub_alloc<half>(2 * floats_per_tile);
    core.data_copy(numbers, gm(m.floats(), floats_per_tile), floats_per_tile);
    order<Pipe::copy_in, Pipe::vector>(core);
    core.cast(message.from(wrong ? 8 : 16), numbers, floats_per_tile);  // WRONG: halves_behind_a_header
}

// 100 is no multiple of 32.
void tile_at_an_odd_offset(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_at<float>(wrong ? 100 : 128, floats_per_tile);  // WRONG: tile_at_an_odd_offset
    core.data_copy(tile, gm(m.floats(), floats_per_tile), floats_per_tile);
}

// ---- H2 -----------------------------------------------------------------------------------------------------------

// 48 tiles of more than 4 KiB do not fit.
void a_tile_for_each_row(Core& core, const Memory& m, bool wrong) {
    for (int row = 0; row < 48; ++row) {
        const std::size_t mark = core.ub_used();
        const auto tile = core.ub_alloc<float>(1056);  // WRONG: a_tile_for_each_row
        core.data_copy(tile, gm(m.floats(), 1024), 1024);
        core.pipe_barrier<Pipe::copy_in>();
        if (!wrong) core.ub_release(mark);
    }
}

// Nine floats take 64 bytes in UB.
void rows_without_room_for_padding(Core& core, const Memory& m, bool wrong) {
    const PadShape rows{.blocks = 3, .block_bytes = 36};
    const auto tile = core.ub_alloc<float>(wrong ? 3 * 9 : rows.ub_span() / sizeof(float));
    core.data_copy_pad(tile, gm(m.floats(), 27), rows);  // WRONG: rows_without_room_for_padding
}

void count_in_bytes(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(floats_per_tile);
    const std::size_t count = wrong ? floats_per_tile * sizeof(float) : floats_per_tile;
    core.data_copy(tile, gm(m.floats(), 1024), count);  // WRONG: count_in_bytes
}

// The accumulator has one row, and the loop clears two.
void clears_beyond_the_accumulator(Core& core, const Memory& m, bool wrong) {
    const auto sum = core.ub_alloc<float>(floats_per_tile);
    core.fill(sum, 0, wrong ? 2 * floats_per_tile : floats_per_tile);  // WRONG: clears_beyond_the_accumulator
    order<Pipe::vector, Pipe::copy_out>(core);
    core.data_copy(gm(m.floats(), floats_per_tile), sum, floats_per_tile);
}

// UB has 192 KiB, and the library keeps four of them.
void two_halves_of_ub(Core& core, const Memory&, bool wrong) {
    const std::size_t bytes = wrong ? 96 * kib : core.ub_free() / 2;
    const auto ping = core.ub_alloc<std::byte>(bytes);
    const auto pong = core.ub_alloc<std::byte>(bytes);  // WRONG: two_halves_of_ub
    use(ping.size() + pong.size());
}

// ---- H3 -----------------------------------------------------------------------------------------------------------

// 256 floats are 1024 bytes.
void ping_pong_offsets(Core& core, const Memory& m, bool wrong) {
    const auto ping = core.ub_at<float>(0, 256);
    const auto pong = core.ub_at<float>(wrong ? 512 : 1024, 256);  // WRONG: ping_pong_offsets
    core.data_copy(ping, gm(m.floats(), 256), 256);
    core.pipe_barrier<Pipe::copy_in>();
    core.data_copy(pong, gm(m.floats() + 256, 256), 256);
}

void placed_over_allocated(Core& core, const Memory& m, bool wrong) {
    const auto weights = core.ub_alloc<float>(256);
    const auto scratch = core.ub_at<float>(wrong ? 0 : 4 * kib, 64);  // WRONG: placed_over_allocated
    core.data_copy(weights, gm(m.floats(), 256), 256);
    core.pipe_barrier<Pipe::copy_in>();
    core.data_copy(scratch, gm(m.floats(), 64), 64);
}

void counters_at_the_top(Core& core, const Memory&, bool wrong) {
    const auto counters = core.ub_at<std::int32_t>((wrong ? 190 : 186) * kib, 64);  // WRONG: counters_at_the_top
    core.fill(counters, 0, 64);
}

// The table has grown from 256 to 300 entries.
void table_grew_into_the_tile(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_at<float>(wrong ? 2048 : 2240, floats_per_tile);
    const auto table = core.ub_at<float>(1024, 300);  // WRONG: table_grew_into_the_tile
    core.fill(table, 0, 300);
    core.data_copy(tile, gm(m.floats(), floats_per_tile), floats_per_tile);
}

// ---- H5 -----------------------------------------------------------------------------------------------------------

void accumulator_not_cleared(Core& core, const Memory& m, bool wrong) {
    const auto row = core.ub_alloc<float>(floats_per_tile);
    const auto sum = core.ub_alloc<float>(floats_per_tile);
    if (!wrong) core.fill(sum, 0, floats_per_tile);
    core.data_copy(row, gm(m.floats(), floats_per_tile), floats_per_tile);
    order<Pipe::copy_in, Pipe::vector>(core);
    core.pipe_barrier<Pipe::vector>();
    core.axpy(sum, row, 0.5F, floats_per_tile);  // WRONG: accumulator_not_cleared
}

// The last tile has 48 elements only.
void tail_not_filled(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(floats_per_tile);
    core.data_copy(tile, gm(m.floats(), 48), 48);
    if (!wrong) core.fill(tile.from(48), 0, 16);
    order<Pipe::copy_in, Pipe::vector>(core);
    core.pipe_barrier<Pipe::vector>();
    core.multiply_scalar(tile, tile, 2, floats_per_tile);  // WRONG: tail_not_filled
}

// Five numbers were copied; the buffer has eight.
void padding_in_the_sum(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(8);
    core.data_copy_pad(tile, gm(m.floats(), 5), PadShape{.block_bytes = 5 * sizeof(float)}, -1);
    order<Pipe::copy_in, Pipe::scalar>(core);
    float sum = 0;
    for (std::size_t i = 0; i < (wrong ? tile.size() : 5); ++i) sum += core.get(tile, i);  // WRONG: padding_in_the_sum
    core.store(m.floats() + 512, sum);
}

void one_row_too_many(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(4 * floats_per_tile);
    core.data_copy(tile, gm(m.floats(), 1024), StridedShape{.blocks = 3, .block_units = 8, .source_gap_units = 8});
    order<Pipe::copy_in, Pipe::copy_out>(core);
    const StridedShape rows{.blocks = wrong ? 4U : 3U, .block_units = 8};
    core.data_copy(gm(m.floats() + 1024, 1024), tile, rows);  // WRONG: one_row_too_many
}

// An expert without tokens has nothing to sum, but its output row is sent all the same.
void output_of_an_idle_expert(Core& core, const Memory& m, bool wrong) {
    const auto sum = core.ub_alloc<float>(floats_per_tile);
    const Word tokens = core.load(m.data);
    if (tokens > 0 || !wrong) core.fill(sum, 0, floats_per_tile);
    order<Pipe::vector, Pipe::copy_out>(core);
    core.data_copy(gm(m.floats() + 1024, floats_per_tile), sum, floats_per_tile);  // WRONG: output_of_an_idle_expert
}

// Skips the copy of an empty row, and sends what the buffer of the row before had at this place.
void tile_of_the_row_before(Core& core, const Memory& m, bool wrong) {
    for (int row = 0; row < 2; ++row) {
        const std::size_t mark = core.ub_used();
        const auto tile = core.ub_alloc<float>(floats_per_tile);
        if (row == 0 || !wrong) core.data_copy(tile, gm(m.floats(), floats_per_tile), floats_per_tile);
        order<Pipe::copy_in, Pipe::copy_out>(core);
        float* const there = m.floats() + 1024 + 64 * row;
        core.data_copy(gm(there, floats_per_tile), tile, floats_per_tile);  // WRONG: tile_of_the_row_before
        order<Pipe::copy_out, Pipe::copy_in>(core);
        core.ub_release(mark);
    }
}

// ---- H6 -----------------------------------------------------------------------------------------------------------

void row_of_five(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(8);
    if (wrong)
        core.data_copy(tile, gm(m.floats(), 5), 5);  // WRONG: row_of_five
    else
        core.data_copy_pad(tile, gm(m.floats(), 5), PadShape{.block_bytes = 5 * sizeof(float)});
}

void no_tokens_to_copy(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(floats_per_tile);
    const std::size_t count = core.load(m.data) * 8;
    if (!wrong && count == 0) return;
    core.data_copy(tile, gm(m.floats() + 512, floats_per_tile), count);  // WRONG: no_tokens_to_copy
}

// A copy has at most 4095 blocks.
void column_of_a_long_matrix(Core& core, const Memory& m, bool wrong) {
    const std::size_t rows = wrong ? 4096 : 2048;
    const auto tile = core.ub_alloc<float>(2048 * 8);
    core.data_copy_pad(tile, gm(m.floats(), 2048), PadShape{rows, sizeof(float)});  // WRONG: column_of_a_long_matrix
}

void whole_table_at_once(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<std::byte>(4 * kib);
    const auto table = gm(reinterpret_cast<std::byte*>(m.data), 4 * kib);
    const std::size_t bytes = wrong ? 2048 * kib : 4 * kib;
    core.data_copy_pad(tile, table, PadShape{.block_bytes = bytes});  // WRONG: whole_table_at_once
}

void half_of_an_element(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(8);
    core.data_copy_pad(tile, gm(m.floats(), 8), PadShape{.block_bytes = wrong ? 6U : 8U});  // WRONG: half_of_an_element
}

}  // namespace

std::vector<Kernel> buffer_kernels() {
    return {
        {"odd_ub_slice", Hazard::alignment, one_core, odd_ub_slice},
        {"neighbour_differences", Hazard::alignment, one_core, neighbour_differences},
        {"packed_records", Hazard::alignment, one_core, packed_records},
        {"strided_rows_at_odd_place", Hazard::alignment, one_core, strided_rows_at_odd_place},
        {"halves_behind_a_header", Hazard::alignment, one_core, halves_behind_a_header},
        {"tile_at_an_odd_offset", Hazard::alignment, one_core, tile_at_an_odd_offset},
        {"a_tile_for_each_row", Hazard::ub_overflow, one_core, a_tile_for_each_row},
        {"rows_without_room_for_padding", Hazard::ub_overflow, one_core, rows_without_room_for_padding},
        {"count_in_bytes", Hazard::ub_overflow, one_core, count_in_bytes},
        {"clears_beyond_the_accumulator", Hazard::ub_overflow, one_core, clears_beyond_the_accumulator},
        {"two_halves_of_ub", Hazard::ub_overflow, one_core, two_halves_of_ub},
        {"ping_pong_offsets", Hazard::ub_overlap, one_core, ping_pong_offsets},
        {"placed_over_allocated", Hazard::ub_overlap, one_core, placed_over_allocated},
        {"counters_at_the_top", Hazard::ub_overlap, one_core, counters_at_the_top},
        {"table_grew_into_the_tile",
         Hazard::ub_overlap,
         one_core,
         table_grew_into_the_tile,
         {},
         nullptr,
         nullptr,
         "H4"},
        {"accumulator_not_cleared", Hazard::unwritten_ub, one_core, accumulator_not_cleared},
        {"tail_not_filled", Hazard::unwritten_ub, one_core, tail_not_filled},
        {"padding_in_the_sum", Hazard::unwritten_ub, one_core, padding_in_the_sum},
        {"one_row_too_many", Hazard::unwritten_ub, one_core, one_row_too_many},
        {"output_of_an_idle_expert", Hazard::unwritten_ub, one_core, output_of_an_idle_expert},
        {"tile_of_the_row_before", Hazard::unwritten_ub, one_core, tile_of_the_row_before},
        {"row_of_five", Hazard::copy_shape, one_core, row_of_five},
        {"no_tokens_to_copy", Hazard::copy_shape, one_core, no_tokens_to_copy},
        {"column_of_a_long_matrix", Hazard::copy_shape, one_core, column_of_a_long_matrix},
        {"whole_table_at_once", Hazard::copy_shape, one_core, whole_table_at_once},
        {"half_of_an_element", Hazard::copy_shape, one_core, half_of_an_element},
    };
}

}  // namespace npushmem::npu::corpus
