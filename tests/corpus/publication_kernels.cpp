// SPDX-License-Identifier: BSD-3-Clause
// Data that is announced before it is there (H8), and flags that protect a signal in the wrong direction (H20).
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr std::size_t message_words = 16;  // words

// PE `from` has announced its data: reads it.
void receive(Core& core, const Memory& m, int from) {
    core.signal_wait_until(m.signal(0), Compare::greater_equal, 1, from);
    core.data_copy(core.ub_alloc<Word>(message_words), gm(m.data, message_words), message_words);
}

// ---- H8 -----------------------------------------------------------------------------------------------------------

void put_then_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    core.put(m.data, m.data + 512, message_words, 1);  // WRONG: put_then_signal
    if (!wrong) core.fence();
    core.signal_set_on(m.signal(0), 1, 1);
}

// PE 1 gets what PE 0 stored in its own memory.
void result_stays_in_the_cache(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.store(m.data, 7);  // WRONG: result_stays_in_the_cache
        if (!wrong) core.dcci(m.data);
        return core.signal_set_on(m.signal(0), 1, 1);
    }
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    core.get(m.data + 512, m.data, 8, 0);
}

void copy_out_then_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(core.remote(gm(m.floats(), 32), 1), tile, 32);  // WRONG: copy_out_then_signal
    if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    core.signal_set_on(m.signal(0), 1, 1);
}

// Sixteen words are two lines.
void flushes_the_first_line_only(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    Word* const there = core.remote(m.data, 1);
    for (std::size_t i = 0; i < message_words; ++i) core.store(there + i, i);  // WRONG: flushes_the_first_line_only
    core.dcci(there, wrong ? 8 : message_words * sizeof(Word));
    core.signal_set_on(m.signal(0), 1, 1);
}

// PE 0 puts to PE 2 and signals PE 1, which signals PE 2. A fence orders signals to the same PE only.
void relay_behind_a_fence(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 2) return receive(core, m, 1);
    if (core.my_pe() == 1) {
        core.signal_wait_until(m.signal(1), Compare::equal, 1, 0);
        return core.signal_set_on(m.signal(0), 1, 2);
    }
    core.put(m.data, m.data + 512, message_words, 2);  // WRONG: relay_behind_a_fence
    if (wrong)
        core.fence();
    else
        core.quiet();
    core.signal_set_on(m.signal(1), 1, 1);
}

void counter_instead_of_a_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    core.put(m.data, m.data + 512, message_words, 1);  // WRONG: counter_instead_of_a_signal
    if (!wrong) core.fence();
    core.atomic_fetch_add_on(m.signal(0), 1, 1);
}

// The flag is a word that PE 0 stores and PE 1 polls.
void flag_by_a_remote_store(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.put(m.data, m.data + 512, message_words, 1);  // WRONG: flag_by_a_remote_store
        if (!wrong) core.fence();
        core.store(core.remote(m.signal(0), 1), 1);
        return core.dcci(core.remote(m.signal(0), 1));
    }
    while (core.load(m.signal(0)) != 1) core.dcci(m.signal(0));
    core.data_copy(core.ub_alloc<Word>(message_words), gm(m.data, message_words), message_words);
}

// Core 0 puts, core 1 signals; the core barrier between them does not wait for MTE3.
void core_barrier_is_no_fence(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) {
        if (core.index() == 0) receive(core, m, 0);
        return;
    }
    if (core.index() == 0) {
        core.put(m.data, m.data + 512, message_words, 1);  // WRONG: core_barrier_is_no_fence
        if (!wrong) core.fence();
    }
    core.core_barrier();
    if (core.index() == 1) core.signal_set_on(m.signal(0), 1, 1);
}

// Each core has its own operations: quiet of core 1 does not wait for core 0.
void quiet_of_another_core(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) {
        if (core.index() == 0) receive(core, m, 0);
        return;
    }
    if (core.index() == 0) core.put(m.data, m.data + 512, message_words, 1);  // WRONG: quiet_of_another_core
    if (core.index() == 0 && !wrong) core.quiet();
    core.core_barrier();
    if (core.index() == 0) return;
    core.quiet();
    core.signal_set_on(m.signal(0), 1, 1);
}

void second_put_behind_the_fence(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    core.put(m.data, m.data + 512, 8, 1);
    if (wrong) core.fence();
    core.put(m.data + 8, m.data + 520, 8, 1);  // WRONG: second_put_behind_the_fence
    if (!wrong) core.fence();
    core.signal_set_on(m.signal(0), 1, 1);
}

// Every core copies its part out; core 0 copies all parts in.
void parts_not_drained_before_the_join(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(gm(m.floats() + 32 * core.index(), 32), tile, 32);  // WRONG: parts_not_drained_before_the_join
    if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    core.core_barrier();
    if (core.index() == 0) core.data_copy(core.ub_alloc<float>(64), gm(m.floats(), 64), 64);
}

// The lock is right, but what it protects stays in the cache.
void unlocks_before_the_flush(Core& core, const Memory& m, bool wrong) {
    while (core.atomic_compare_swap(m.signal(0), 0, 1) != 0) core.yield();
    core.dcci(m.data);
    core.store(m.data, core.load(m.data) + 1);  // WRONG: unlocks_before_the_flush
    if (!wrong) core.dcci(m.data);
    core.signal_set(m.signal(0), 0);
}

void maximum_stays_in_the_cache(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.floats(), 3);  // WRONG: maximum_stays_in_the_cache
        if (!wrong) core.dcci(m.floats());
    }
    core.core_barrier();
    if (core.index() == 1) use(core.load(m.data));
}

// dcci concerns the cache; the copy is in MTE3's queue.
void dcci_does_not_drain(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(core.remote(gm(m.floats(), 32), 1), tile, 32);  // WRONG: dcci_does_not_drain
    if (wrong)
        core.dcci(core.remote(m.data, 1), message_words * sizeof(Word));
    else
        core.quiet();
    core.signal_set_on(m.signal(0), 1, 1);
}

// The barrier of MTE3 orders its commands; the signal is S's.
void barrier_of_the_wrong_pipe(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(core.remote(gm(m.floats(), 32), 1), tile, 32);  // WRONG: barrier_of_the_wrong_pipe
    if (wrong)
        core.pipe_barrier<Pipe::copy_out>();
    else
        core.pipe_barrier<Pipe::all>();
    core.signal_set_on(m.signal(0), 1, 1);
}

// ---- H20 ----------------------------------------------------------------------------------------------------------

void flag_to_mte2_before_a_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(core.remote(gm(m.floats(), 32), 1), tile, 32);  // WRONG: flag_to_mte2_before_a_signal
    if (wrong)
        order<Pipe::copy_out, Pipe::copy_in>(core);
    else
        order<Pipe::copy_out, Pipe::scalar>(core);
    core.signal_set_on(m.signal(0), 1, 1);
}

void flag_to_v_before_a_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = filled_tile(core, 32, 1);
    core.data_copy(core.remote(gm(m.floats(), 32), 1), tile, 32);  // WRONG: flag_to_v_before_a_signal
    order<Pipe::copy_out, Pipe::vector>(core);
    core.fill(tile, 2, 32);
    if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    core.signal_set_on(m.signal(0), 1, 1);
}

void flag_to_mte2_before_a_counter(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    core.put(m.data, m.data + 512, message_words, 1);  // WRONG: flag_to_mte2_before_a_counter
    if (wrong)
        order<Pipe::copy_out, Pipe::copy_in>(core, 1);
    else
        order<Pipe::copy_out, Pipe::scalar>(core, 1);
    core.atomic_fetch_add_on(m.signal(0), 1, 1);
}

// The loop has flags for its buffer; the last copy needs one for the signal.
void flags_of_the_loop_only(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return receive(core, m, 0);
    const auto tile = core.ub_alloc<Word>(8);
    for (std::size_t i = 0; i < 2; ++i) {
        core.data_copy(tile, gm(m.data + 512 + 8 * i, 8), 8);
        order<Pipe::copy_in, Pipe::copy_out>(core);
        core.data_copy(core.remote(gm(m.data + 8 * i, 8), 1), tile, 8);  // WRONG: flags_of_the_loop_only
        order<Pipe::copy_out, Pipe::copy_in>(core);
    }
    if (!wrong) order<Pipe::copy_out, Pipe::scalar>(core);
    core.signal_set_on(m.signal(0), 1, 1);
}

// The row has two lines, which may arrive in any order: its last word does not announce the first line.
void polls_the_last_word_of_a_row(Core& core, const Memory& m, bool wrong) {
    constexpr std::size_t words = 2 * words_per_line;
    Word* const row = m.data + 512;
    if (core.my_pe() == 1) {
        for (std::size_t i = 0; i < words; ++i) core.store(m.data + i, 7);
        core.dcci(m.data, words * sizeof(Word));
        core.put(row, m.data, words, 0);  // WRONG: polls_the_last_word_of_a_row
        core.fence();
        return core.signal_set_on(m.signal(0), 1, 0);
    }
    if (wrong)
        while (core.load(row + words - 1) != 7) core.dcci(row + words - 1);
    else
        core.signal_wait_until(m.signal(0), Compare::equal, 1, 1);
    use(core.load(row));  // WRONG: polls_the_last_word_of_a_row
}

}  // namespace

std::vector<Kernel> publication_kernels() {
    return {
        {"put_then_signal", Hazard::unpublished, two_pes, put_then_signal},
        {"result_stays_in_the_cache", Hazard::unpublished, two_pes, result_stays_in_the_cache},
        {"copy_out_then_signal", Hazard::unpublished, two_pes, copy_out_then_signal},
        {"flushes_the_first_line_only", Hazard::unpublished, two_pes, flushes_the_first_line_only},
        {"relay_behind_a_fence", Hazard::unpublished, three_pes, relay_behind_a_fence},
        {"counter_instead_of_a_signal", Hazard::unpublished, two_pes, counter_instead_of_a_signal},
        {"flag_by_a_remote_store", Hazard::unpublished, two_pes, flag_by_a_remote_store},
        {"core_barrier_is_no_fence", Hazard::unpublished, two_pes_of_two_cores, core_barrier_is_no_fence},
        {"quiet_of_another_core", Hazard::unpublished, two_pes_of_two_cores, quiet_of_another_core},
        {"second_put_behind_the_fence", Hazard::unpublished, two_pes, second_put_behind_the_fence},
        {"parts_not_drained_before_the_join",
         Hazard::unpublished,
         two_cores,
         parts_not_drained_before_the_join,
         {},
         nullptr,
         nullptr,
         "H4"},
        {"unlocks_before_the_flush",
         Hazard::unpublished,
         two_cores,
         unlocks_before_the_flush,
         {},
         nullptr,
         nullptr,
         "H9"},
        {"maximum_stays_in_the_cache", Hazard::unpublished, two_cores, maximum_stays_in_the_cache},
        {"dcci_does_not_drain", Hazard::unpublished, two_pes, dcci_does_not_drain},
        {"barrier_of_the_wrong_pipe", Hazard::unpublished, two_pes, barrier_of_the_wrong_pipe},
        {"flag_to_mte2_before_a_signal", Hazard::wrong_direction, two_pes, flag_to_mte2_before_a_signal},
        {"flag_to_v_before_a_signal", Hazard::wrong_direction, two_pes, flag_to_v_before_a_signal},
        {"flag_to_mte2_before_a_counter", Hazard::wrong_direction, two_pes, flag_to_mte2_before_a_counter},
        {"flags_of_the_loop_only", Hazard::wrong_direction, two_pes, flags_of_the_loop_only},
        {"polls_the_last_word_of_a_row", Hazard::unpublished, two_pes, polls_the_last_word_of_a_row, "jobs"},
    };
}

}  // namespace npushmem::npu::corpus
