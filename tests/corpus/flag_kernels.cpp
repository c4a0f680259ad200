// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with flags, pipe barriers and the atomic mode themselves.
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr std::size_t tile_size = 64;  // floats of a tile

// ---- H16 ----------------------------------------------------------------------------------------------------------

void one_wait_for_all_tiles(Core& core, const Memory& m, bool wrong) {
    const auto tiles = core.ub_alloc<float>(3 * tile_size);
    for (std::size_t i = 0; i < 3; ++i) {
        core.data_copy(tiles.from(i * tile_size), gm(m.floats() + i * tile_size, tile_size), tile_size);
        if (wrong || i == 2) core.set_flag<Pipe::copy_in, Pipe::vector>(0);  // WRONG: one_wait_for_all_tiles
    }
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.add_scalar(tiles, tiles, 1, 3 * tile_size);
}

void same_id_for_both_buffers(Core& core, const Memory& m, bool wrong) {
    const auto a = core.ub_alloc<float>(tile_size);
    const auto b = core.ub_alloc<float>(tile_size);
    core.data_copy(a, gm(m.floats(), tile_size), tile_size);
    core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    core.data_copy(b, gm(m.floats() + tile_size, tile_size), tile_size);
    core.set_flag<Pipe::copy_in, Pipe::vector>(wrong ? 0 : 1);  // WRONG: same_id_for_both_buffers
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.wait_flag<Pipe::copy_in, Pipe::vector>(wrong ? 0 : 1);
    core.add(a, a, b, tile_size);
}

// All rows are empty here; their flags are set all the same.
void skips_the_wait_of_empty_rows(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(tile_size);
    for (std::size_t i = 0; i < 2; ++i) {
        const bool empty = core.load(m.data + 512 + i) == 0;
        core.data_copy(tile, gm(m.floats() + i * tile_size, tile_size), tile_size);
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);  // WRONG: skips_the_wait_of_empty_rows
        if (empty && wrong) continue;
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
        order<Pipe::vector, Pipe::copy_in>(core);
    }
}

// The flag says that the buffer is free. It is set before the loop and at the end of each round.
void buffer_is_free_twice(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(tile_size);
    core.set_flag<Pipe::copy_out, Pipe::copy_in>(0);
    for (std::size_t i = 0; i < 2; ++i) {
        if (!wrong) core.wait_flag<Pipe::copy_out, Pipe::copy_in>(0);
        core.data_copy(tile, gm(m.floats() + i * tile_size, tile_size), tile_size);
        order<Pipe::copy_in, Pipe::copy_out>(core);
        core.data_copy(gm(m.floats() + 1024, tile_size), tile, tile_size);
        core.pipe_barrier<Pipe::copy_out>();
        core.set_flag<Pipe::copy_out, Pipe::copy_in>(0);  // WRONG: buffer_is_free_twice
    }
    core.wait_flag<Pipe::copy_out, Pipe::copy_in>(0);
}

// ---- H18 ----------------------------------------------------------------------------------------------------------

void an_id_for_each_stage(Core& core, const Memory&, bool wrong) {
    for (int stage = 0; stage < (wrong ? 8 : 6); ++stage) {
        core.set_flag<Pipe::vector, Pipe::copy_out>(stage);  // WRONG: an_id_for_each_stage
        core.wait_flag<Pipe::vector, Pipe::copy_out>(stage);
    }
}

void id_of_the_library(Core& core, const Memory& m, bool wrong) {
    const int id = wrong ? 7 : 5;
    core.data_copy(core.ub_alloc<float>(tile_size), gm(m.floats(), tile_size), tile_size);
    core.set_flag<Pipe::copy_in, Pipe::scalar>(id);  // WRONG: id_of_the_library
    core.wait_flag<Pipe::copy_in, Pipe::scalar>(id);
}

// The buffer before buffer 0 is buffer 1.
void id_of_the_previous_buffer(Core& core, const Memory&, bool wrong) {
    for (int i = 0; i < 2; ++i) {
        const int previous = wrong ? i - 1 : (i + 1) % 2;
        core.set_flag<Pipe::copy_out, Pipe::copy_in>(previous);  // WRONG: id_of_the_previous_buffer
        core.wait_flag<Pipe::copy_out, Pipe::copy_in>(previous);
    }
}

// ---- H19 ----------------------------------------------------------------------------------------------------------

void returns_before_the_wait(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(tile_size);
    core.data_copy(tile, gm(m.floats(), tile_size), tile_size);
    core.set_flag<Pipe::copy_in, Pipe::vector>(0);  // WRONG: returns_before_the_wait
    const bool nothing_to_do = core.load(m.data + 512) == 0;
    if (nothing_to_do && wrong) return;
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    if (!nothing_to_do) core.add_scalar(tile, tile, 1, tile_size);
}

// Nobody waits for the flag of the last round.
void flag_of_the_last_round(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, tile_size, 1);
    for (std::size_t i = 0; i < 3; ++i) {
        if (i > 0) core.wait_flag<Pipe::copy_out, Pipe::vector>(0);
        core.pipe_barrier<Pipe::vector>();
        core.add_scalar(tile, tile, 1, tile_size);
        order<Pipe::vector, Pipe::copy_out>(core);
        core.data_copy(gm(m.floats() + i * tile_size, tile_size), tile, tile_size);
        core.set_flag<Pipe::copy_out, Pipe::vector>(0);  // WRONG: flag_of_the_last_round
    }
    if (!wrong) core.wait_flag<Pipe::copy_out, Pipe::vector>(0);
}

// Both buffers are declared free, and one is used.
void flag_of_the_unused_buffer(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(tile_size);
    core.set_flag<Pipe::vector, Pipe::copy_in>(0);
    core.set_flag<Pipe::vector, Pipe::copy_in>(1);  // WRONG: flag_of_the_unused_buffer
    core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
    core.data_copy(tile, gm(m.floats(), tile_size), tile_size);
    if (!wrong) core.wait_flag<Pipe::vector, Pipe::copy_in>(1);
}

// ---- H21 ----------------------------------------------------------------------------------------------------------

void scalar_barrier_before_a_signal(Core& core, const Memory& m, bool wrong) {
    core.data_copy(gm(m.floats(), tile_size), filled_tile(core, tile_size, 1), tile_size);
    if (wrong)
        core.pipe_barrier<Pipe::scalar>();  // WRONG: scalar_barrier_before_a_signal
    else
        order<Pipe::copy_out, Pipe::scalar>(core);
    core.signal_set(m.signal(0), 1);
}

void scalar_barrier_behind_stores(Core& core, const Memory&, bool wrong) {
    const auto table = core.ub_alloc<float>(8);
    for (std::size_t i = 0; i < 8; ++i) core.set(table, i, 1);
    if (wrong)
        core.pipe_barrier<Pipe::scalar>();  // WRONG: scalar_barrier_behind_stores
    else
        order<Pipe::scalar, Pipe::vector>(core);
    core.add(table, table, table, 8);
}

void scalar_barrier_in_a_loop(Core& core, const Memory& m, bool wrong) {
    for (std::size_t i = 0; i < 4; ++i) {
        core.store(m.data + i, i);
        if (wrong) core.pipe_barrier<Pipe::scalar>();  // WRONG: scalar_barrier_in_a_loop
    }
}

// ---- H22 ----------------------------------------------------------------------------------------------------------

void adds_until_the_end(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, tile_size, 1);
    core.set_atomic_add<float>();  // WRONG: adds_until_the_end
    core.data_copy(gm(m.floats(), tile_size), tile, tile_size);
    if (!wrong) core.clear_atomic();
}

// Copies rows in while the mode for copies out is on.
void atomic_around_the_loop(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(tile_size);
    if (wrong) core.set_atomic_add<float>();
    for (std::size_t i = 0; i < 2; ++i) {
        const auto row = gm(m.floats() + i * tile_size, tile_size);
        core.data_copy(tile, row, tile_size);  // WRONG: atomic_around_the_loop
        order<Pipe::copy_in, Pipe::copy_out>(core);
        if (!wrong) core.set_atomic_add<float>();
        core.data_copy(gm(m.floats() + 1024, tile_size), tile, tile_size);
        if (!wrong) core.clear_atomic();
        order<Pipe::copy_out, Pipe::copy_in>(core);
    }
    if (wrong) core.clear_atomic();
}

void returns_in_atomic_mode(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, tile_size, 1);
    core.set_atomic_add<float>();  // WRONG: returns_in_atomic_mode
    core.data_copy(gm(m.floats(), tile_size), tile, tile_size);
    if (core.load(m.data + 512) == 0) {
        if (!wrong) core.clear_atomic();
        return;
    }
    core.data_copy(gm(m.floats() + tile_size, tile_size), tile, tile_size);
    core.clear_atomic();
}

// A put does not add.
void put_in_atomic_mode(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, tile_size, 1);
    core.set_atomic_add<float>();
    core.data_copy(gm(m.floats(), tile_size), tile, tile_size);
    if (!wrong) core.clear_atomic();
    core.put(m.floats() + 1024, m.floats() + 512, tile_size, 1 - core.my_pe());  // WRONG: put_in_atomic_mode
    if (wrong) core.clear_atomic();
}

}  // namespace

std::vector<Kernel> flag_kernels() {
    return {
        {"one_wait_for_all_tiles",
         Hazard::flag_set_twice,
         one_core,
         one_wait_for_all_tiles,
         {},
         nullptr,
         nullptr,
         "H19"},
        {"same_id_for_both_buffers", Hazard::flag_set_twice, one_core, same_id_for_both_buffers},
        {"skips_the_wait_of_empty_rows",
         Hazard::flag_set_twice,
         one_core,
         skips_the_wait_of_empty_rows,
         {},
         nullptr,
         nullptr,
         "H15 H19"},
        {"buffer_is_free_twice",
         Hazard::flag_set_twice,
         one_core,
         buffer_is_free_twice,
         {},
         nullptr,
         nullptr,
         "H15 H19 H26"},
        {"an_id_for_each_stage", Hazard::flag_id, one_core, an_id_for_each_stage},
        {"id_of_the_library", Hazard::flag_id, one_core, id_of_the_library},
        {"id_of_the_previous_buffer", Hazard::flag_id, one_core, id_of_the_previous_buffer},
        {"returns_before_the_wait", Hazard::left_over, one_core, returns_before_the_wait},
        {"flag_of_the_last_round", Hazard::left_over, one_core, flag_of_the_last_round},
        {"flag_of_the_unused_buffer", Hazard::left_over, one_core, flag_of_the_unused_buffer},
        {"scalar_barrier_before_a_signal", Hazard::barrier_on_scalar, one_core, scalar_barrier_before_a_signal},
        {"scalar_barrier_behind_stores", Hazard::barrier_on_scalar, one_core, scalar_barrier_behind_stores},
        {"scalar_barrier_in_a_loop", Hazard::barrier_on_scalar, one_core, scalar_barrier_in_a_loop},
        {"adds_until_the_end", Hazard::atomic_mode, one_core, adds_until_the_end},
        {"atomic_around_the_loop", Hazard::atomic_mode, one_core, atomic_around_the_loop},
        {"returns_in_atomic_mode", Hazard::atomic_mode, one_core, returns_in_atomic_mode},
        {"put_in_atomic_mode", Hazard::atomic_mode, two_pes, put_in_atomic_mode},
    };
}

}  // namespace npushmem::npu::corpus
