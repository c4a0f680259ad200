// SPDX-License-Identifier: BSD-3-Clause
// Missing order between the commands of one core: in different pipes, in one pipe, and of staging buffers.
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr std::size_t row_floats = 64;

// ---- H4 -----------------------------------------------------------------------------------------------------------

void adds_before_arrival(Core& core, const Memory& m, bool wrong) {
    const auto a = core.ub_alloc<float>(row_floats);
    const auto b = core.ub_alloc<float>(row_floats);
    core.data_copy(a, gm(m.floats(), row_floats), row_floats);
    core.data_copy(b, gm(m.floats() + row_floats, row_floats), row_floats);
    if (!wrong) order<Pipe::copy_in, Pipe::vector>(core);
    core.add(a, a, b, row_floats);  // WRONG: adds_before_arrival
}

void leaves_before_it_is_computed(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    core.fill(tile, 1, row_floats);
    if (!wrong) order<Pipe::vector, Pipe::copy_out>(core);
    core.data_copy(gm(m.floats(), row_floats), tile, row_floats);  // WRONG: leaves_before_it_is_computed
}

// S writes the scales, V multiplies by them.
void scales_by_scalar_stores(Core& core, const Memory&, bool wrong) {
    const auto scales = core.ub_alloc<float>(8);
    for (std::size_t i = 0; i < 8; ++i) core.set(scales, i, 0.5F);
    if (!wrong) order<Pipe::scalar, Pipe::vector>(core);
    core.multiply(scales, scales, scales, 8);  // WRONG: scales_by_scalar_stores
}

void reads_the_sum_too_early(Core& core, const Memory& m, bool wrong) {
    const auto sum = core.ub_alloc<float>(8);
    core.fill(sum, 3, 8);
    if (!wrong) order<Pipe::vector, Pipe::scalar>(core);
    core.store(m.floats(), core.get(sum, 0));  // WRONG: reads_the_sum_too_early
}

// Fetches the next row while V works on this one.
void prefetches_over_the_operand(Core& core, const Memory& m, bool wrong) {
    const auto in = core.ub_alloc<float>(row_floats);
    const auto out = core.ub_alloc<float>(row_floats);
    core.data_copy(in, gm(m.floats(), row_floats), row_floats);
    order<Pipe::copy_in, Pipe::vector>(core);
    core.multiply_scalar(out, in, 2, row_floats);
    if (!wrong) order<Pipe::vector, Pipe::copy_in>(core);
    core.data_copy(in, gm(m.floats() + row_floats, row_floats), row_floats);  // WRONG: prefetches_over_the_operand
}

void waits_behind_the_add(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    core.data_copy(tile, gm(m.floats(), row_floats), row_floats);
    core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    if (!wrong) core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.add_scalar(tile, tile, 1, row_floats);  // WRONG: waits_behind_the_add
    if (wrong) core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
}

// The flag covers the first copy only.
void sets_the_flag_between_two_copies(Core& core, const Memory& m, bool wrong) {
    const auto a = core.ub_alloc<float>(row_floats);
    const auto b = core.ub_alloc<float>(row_floats);
    core.data_copy(a, gm(m.floats(), row_floats), row_floats);
    if (wrong) core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    core.data_copy(b, gm(m.floats() + row_floats, row_floats), row_floats);
    if (!wrong) core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.subtract(a, a, b, row_floats);  // WRONG: sets_the_flag_between_two_copies
}

// MTE2 fetches the row, MTE3 sends it back to another place.
void forwards_without_a_flag(Core& core, const Memory& m, bool wrong) {
    const int peer = 1 - core.my_pe();
    core.get(m.data + 256, m.data, 16, peer);
    if (!wrong) order<Pipe::copy_in, Pipe::copy_out>(core);
    core.put(m.data + 512, m.data + 256, 16, peer);  // WRONG: forwards_without_a_flag
}

void copies_its_own_dirty_line(Core& core, const Memory& m, bool wrong) {
    for (std::size_t i = 0; i < 8; ++i) core.store(m.data + i, i);
    if (!wrong) core.dcci(m.data);
    core.data_copy(core.ub_alloc<Word>(8), gm(m.data, 8), 8);  // WRONG: copies_its_own_dirty_line
}

void puts_its_own_dirty_row(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() != 0) return;
    core.store(m.data + 256, 7);
    if (!wrong) core.dcci(m.data + 256);
    core.put_signal(m.data, m.data + 256, 8, m.signal(0), 1, 1);  // WRONG: puts_its_own_dirty_row
}

void loads_behind_its_own_copy(Core& core, const Memory& m, bool wrong) {
    core.data_copy(gm(m.floats(), row_floats), filled_tile(core, row_floats, 1), row_floats);
    if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    core.store(m.floats() + 512, core.load(m.floats()));  // WRONG: loads_behind_its_own_copy
}

void loads_behind_a_get(Core& core, const Memory& m, bool wrong) {
    core.get(m.data + 256, m.data, 8, 1 - core.my_pe());
    if (!wrong) order<Pipe::copy_in, Pipe::scalar>(core);
    use(core.load(m.data + 256));  // WRONG: loads_behind_a_get
}

// A tile that does not fit is kept in GM for a while.
void reloads_a_spilled_tile(Core& core, const Memory& m, bool wrong) {
    core.data_copy(gm(m.floats(), row_floats), filled_tile(core, row_floats, 1), row_floats);
    if (!wrong) order<Pipe::copy_out, Pipe::copy_in>(core);
    const auto back = core.ub_alloc<float>(row_floats);
    core.data_copy(back, gm(m.floats(), row_floats), row_floats);  // WRONG: reloads_a_spilled_tile
}

// ---- H15 ----------------------------------------------------------------------------------------------------------

void scales_then_shifts(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    core.data_copy(tile, gm(m.floats(), row_floats), row_floats);
    order<Pipe::copy_in, Pipe::vector>(core);
    core.multiply_scalar(tile, tile, 2, row_floats);
    if (!wrong) core.pipe_barrier<Pipe::vector>();
    core.add_scalar(tile, tile, 1, row_floats);  // WRONG: scales_then_shifts
}

// Rows of 64 floats, 56 apart.
void rows_overlap_on_the_way_out(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, row_floats, 1);
    const std::size_t apart = wrong ? 56 : 64;
    for (std::size_t i = 0; i < 3; ++i)
        core.data_copy(gm(m.floats() + i * apart, row_floats), tile, row_floats);  // WRONG: rows_overlap_on_the_way_out
}

void loads_the_tile_twice(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    core.data_copy(tile, gm(m.floats(), row_floats), row_floats);
    if (!wrong) core.pipe_barrier<Pipe::copy_in>();
    core.data_copy(tile, gm(m.floats() + 512, 32), 32);  // WRONG: loads_the_tile_twice
}

void sums_as_a_tree(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    core.data_copy(tile, gm(m.floats(), row_floats), row_floats);
    order<Pipe::copy_in, Pipe::vector>(core);
    for (std::size_t half_row = row_floats / 2; half_row >= 8; half_row /= 2) {
        core.add(tile, tile, tile.from(half_row), half_row);  // WRONG: sums_as_a_tree
        if (!wrong) core.pipe_barrier<Pipe::vector>();
    }
}

void puts_a_correction_of_the_row(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() != 0) return;
    core.put(m.data, m.data + 256, 16, 1);
    if (!wrong) core.fence();
    core.put(m.data + 4, m.data + 512, 4, 1);  // WRONG: puts_a_correction_of_the_row
}

// Both commands are MTE3's: the put may begin before the copy ends.
void puts_what_it_just_copied_out(Core& core, const Memory& m, bool wrong) {
    core.data_copy(gm(m.floats(), row_floats), filled_tile(core, row_floats, 1), row_floats);
    if (!wrong) core.pipe_barrier<Pipe::copy_out>();
    core.put(m.data + 512, m.data, 32, 1 - core.my_pe());  // WRONG: puts_what_it_just_copied_out
}

// ---- H26 ----------------------------------------------------------------------------------------------------------

void one_staging_buffer(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(row_floats);
    for (std::size_t i = 0; i < 3; ++i) {
        core.data_copy(tile, gm(m.floats() + i * row_floats, row_floats), row_floats);  // WRONG: one_staging_buffer
        order<Pipe::copy_in, Pipe::copy_out>(core);
        core.data_copy(gm(m.floats() + 1024 + i * row_floats, row_floats), tile, row_floats);
        if (!wrong) order<Pipe::copy_out, Pipe::copy_in>(core);
    }
}

void refills_a_tile_that_leaves(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, row_floats, 1);
    core.data_copy(gm(m.floats(), row_floats), tile, row_floats);
    if (!wrong) order<Pipe::copy_out, Pipe::vector>(core);
    core.fill(tile, 2, row_floats);  // WRONG: refills_a_tile_that_leaves
    order<Pipe::vector, Pipe::copy_out>(core);
    core.data_copy(gm(m.floats() + row_floats, row_floats), tile, row_floats);
}

// The message buffer in GM is reused while the put may still read it.
void reuses_the_source_of_a_put(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() != 0) return;
    for (Word message = 1; message <= 2; ++message) {
        core.store(m.data, message);  // WRONG: reuses_the_source_of_a_put
        core.dcci(m.data);
        core.put(m.data + 64 * message, m.data, 8, 1);
        if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    }
}

void gets_into_the_source_of_a_put(Core& core, const Memory& m, bool wrong) {
    const int peer = 1 - core.my_pe();
    core.put(m.data, m.data + 256, 16, peer);
    if (!wrong) order<Pipe::copy_out, Pipe::copy_in>(core);
    core.get(m.data + 256, m.data + 512, 16, peer);  // WRONG: gets_into_the_source_of_a_put
}

// The third row returns to the first buffer.
void three_rows_in_two_buffers(Core& core, const Memory& m, bool wrong) {
    const ub_view<float> tiles[] = {core.ub_alloc<float>(row_floats), core.ub_alloc<float>(row_floats)};
    for (std::size_t i = 0; i < 3; ++i) {
        const int id = static_cast<int>(i % 2);
        if (i >= 2 && !wrong) core.wait_flag<Pipe::copy_out, Pipe::copy_in>(id);
        const auto row = gm(m.floats() + i * row_floats, row_floats);
        core.data_copy(tiles[id], row, row_floats);  // WRONG: three_rows_in_two_buffers
        order<Pipe::copy_in, Pipe::copy_out>(core, id);
        core.data_copy(gm(m.floats() + 1024 + i * row_floats, row_floats), tiles[id], row_floats);
        if (i == 0 && !wrong) core.set_flag<Pipe::copy_out, Pipe::copy_in>(id);
    }
}

}  // namespace

std::vector<Kernel> pipe_kernels() {
    return {
        {"adds_before_arrival", Hazard::missing_flag, one_core, adds_before_arrival},
        {"leaves_before_it_is_computed", Hazard::missing_flag, one_core, leaves_before_it_is_computed},
        {"scales_by_scalar_stores", Hazard::missing_flag, one_core, scales_by_scalar_stores},
        {"reads_the_sum_too_early", Hazard::missing_flag, one_core, reads_the_sum_too_early},
        {"prefetches_over_the_operand",
         Hazard::missing_flag,
         one_core,
         prefetches_over_the_operand,
         {},
         nullptr,
         nullptr,
         "H15"},
        {"waits_behind_the_add", Hazard::missing_flag, one_core, waits_behind_the_add},
        {"sets_the_flag_between_two_copies", Hazard::missing_flag, one_core, sets_the_flag_between_two_copies},
        {"forwards_without_a_flag", Hazard::missing_flag, two_pes, forwards_without_a_flag},
        {"copies_its_own_dirty_line", Hazard::missing_flag, one_core, copies_its_own_dirty_line},
        {"puts_its_own_dirty_row", Hazard::missing_flag, two_pes, puts_its_own_dirty_row},
        {"loads_behind_its_own_copy", Hazard::missing_flag, one_core, loads_behind_its_own_copy},
        {"loads_behind_a_get", Hazard::missing_flag, two_pes, loads_behind_a_get},
        {"reloads_a_spilled_tile", Hazard::missing_flag, one_core, reloads_a_spilled_tile},
        {"scales_then_shifts", Hazard::same_pipe, one_core, scales_then_shifts},
        {"rows_overlap_on_the_way_out", Hazard::same_pipe, one_core, rows_overlap_on_the_way_out},
        {"loads_the_tile_twice", Hazard::same_pipe, one_core, loads_the_tile_twice},
        {"sums_as_a_tree", Hazard::same_pipe, one_core, sums_as_a_tree},
        {"puts_a_correction_of_the_row", Hazard::same_pipe, two_pes, puts_a_correction_of_the_row},
        {"puts_what_it_just_copied_out", Hazard::same_pipe, two_pes, puts_what_it_just_copied_out},
        {"one_staging_buffer", Hazard::staging_reuse, one_core, one_staging_buffer, {}, nullptr, nullptr, "H15"},
        {"refills_a_tile_that_leaves",
         Hazard::staging_reuse,
         one_core,
         refills_a_tile_that_leaves,
         {},
         nullptr,
         nullptr,
         "H15"},
        {"reuses_the_source_of_a_put", Hazard::staging_reuse, two_pes, reuses_the_source_of_a_put},
        {"gets_into_the_source_of_a_put", Hazard::staging_reuse, two_pes, gets_into_the_source_of_a_put},
        {"three_rows_in_two_buffers",
         Hazard::staging_reuse,
         one_core,
         three_rows_in_two_buffers,
         {},
         nullptr,
         nullptr,
         "H15"},
    };
}

}  // namespace npushmem::npu::corpus
