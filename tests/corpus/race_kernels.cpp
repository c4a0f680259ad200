// SPDX-License-Identifier: BSD-3-Clause
// Unordered accesses of several cores and PEs: copies of words that others write (H13), and two writers (H14).
#include <chrono>

#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr std::size_t words = 8;  // words

void announce(Core& core, const Memory& m, Word round, int pe) {
    core.fence();
    core.signal_set_on(m.signal(1), round, pe);
}

// ---- H13 ----------------------------------------------------------------------------------------------------------

void copies_without_waiting(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) return core.put_signal(m.data, m.data + 512, words, m.signal(0), 1, 1);
    if (!wrong) core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    const auto tile = core.ub_alloc<Word>(words);
    core.data_copy(tile, gm(m.data, words), words);  // WRONG: copies_without_waiting
}

// The get is issued early, to hide its latency.
void gets_before_the_wait(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.store(m.data, 7);  // WRONG: gets_before_the_wait
        core.dcci(m.data);
        return core.signal_set_on(m.signal(0), 1, 1);
    }
    if (!wrong) core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    core.get(m.data + 512, m.data, words, 0);  // WRONG: gets_before_the_wait
    if (wrong) core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    order<Pipe::copy_in, Pipe::scalar>(core);
}

// The second message arrives while the first one is still being read.
void message_without_credit(Core& core, const Memory& m, bool wrong) {
    for (Word round = 1; round <= 2; ++round) {
        if (core.my_pe() == 0) {
            if (!wrong && round > 1) core.signal_wait_until(m.signal(1), Compare::greater_equal, round - 1, 1);
            core.put_signal(m.data, m.data + 512, words, m.signal(0), round, 1);  // WRONG: message_without_credit
        } else {
            core.signal_wait_until(m.signal(0), Compare::greater_equal, round, 0);
            core.data_copy(core.ub_alloc<Word>(words), gm(m.data, words), words);
            order<Pipe::copy_in, Pipe::scalar>(core);
            announce(core, m, round, 0);
        }
    }
}

// The credit is returned while the copy is still in MTE2's queue.
void credit_before_the_copy_ends(Core& core, const Memory& m, bool wrong) {
    for (Word round = 1; round <= 2; ++round) {
        if (core.my_pe() == 0) {
            if (round > 1) core.signal_wait_until(m.signal(1), Compare::greater_equal, round - 1, 1);
            core.put_signal(m.data, m.data + 512, words, m.signal(0), round, 1);
        } else {
            core.signal_wait_until(m.signal(0), Compare::greater_equal, round, 0);
            const auto tile = core.ub_alloc<Word>(words);
            core.data_copy(tile, gm(m.data, words), words);  // WRONG: credit_before_the_copy_ends
            if (!wrong) order<Pipe::copy_in, Pipe::scalar>(core);
            announce(core, m, round, 0);
        }
    }
}

void all_gather_without_a_barrier(Core& core, const Memory& m, bool wrong) {
    core.store(m.data, 1);  // WRONG: all_gather_without_a_barrier
    core.dcci(m.data);
    if (!wrong) sync_v3(core, {0, 1, core.n_pes()}, m.barriers);
    for (int pe = 0; pe < core.n_pes(); ++pe)
        if (pe != core.my_pe())
            core.get(m.data + 64 * (pe + 1), m.data, words, pe);  // WRONG: all_gather_without_a_barrier
}

// Each PE waits for its left neighbour and reads from its right one.
void waits_for_the_wrong_neighbour(Core& core, const Memory& m, bool wrong) {
    const int right = (core.my_pe() + 1) % core.n_pes();
    const int left = (core.my_pe() + core.n_pes() - 1) % core.n_pes();
    core.store(m.data, 1);  // WRONG: waits_for_the_wrong_neighbour
    core.dcci(m.data);
    core.signal_set_on(m.signal(0), 1, wrong ? right : left);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, wrong ? left : right);
    core.get(m.data + 64, m.data, words, right);  // WRONG: waits_for_the_wrong_neighbour
}

// Core 0 waits for the message; core 1 copies its half of it.
void missing_join_behind_the_wait(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        if (core.index() == 0) core.put_signal(m.data, m.data + 512, 2 * words, m.signal(0), 1, 1);
        return;
    }
    if (core.index() == 0) core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    if (!wrong) core.core_barrier();
    const auto half_of_it = gm(m.data + words * static_cast<std::size_t>(core.index()), words);
    core.data_copy(core.ub_alloc<Word>(words), half_of_it, words);  // WRONG: missing_join_behind_the_wait
}

// Core 1 reads the sum to which both cores add.
void reads_while_others_add(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, 16, 1);
    core.set_atomic_add<float>();
    core.data_copy(gm(m.floats(), 16), tile, 16);  // WRONG: reads_while_others_add
    core.clear_atomic();
    order<Pipe::copy_out, Pipe::scalar>(core);
    if (!wrong) core.core_barrier();
    if (core.index() == 1)
        core.data_copy(core.ub_alloc<float>(16), gm(m.floats(), 16), 16);  // WRONG: reads_while_others_add
}

// Core 1 prepares the next message while core 0 puts this one.
void stores_into_the_source_of_a_put(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return;
    if (core.index() == 0) {
        core.put(m.data, m.data + 512, words, 1);  // WRONG: stores_into_the_source_of_a_put
        order<Pipe::copy_out, Pipe::scalar>(core);
    }
    if (!wrong) core.core_barrier();
    if (core.index() == 0) return;
    core.store(m.data + 512, 2);  // WRONG: stores_into_the_source_of_a_put
    core.dcci(m.data + 512);
}

// ---- H14 ----------------------------------------------------------------------------------------------------------

void counts_by_load_and_store(Core& core, const Memory& m, bool wrong) {
    if (!wrong) return static_cast<void>(core.atomic_fetch_add(m.data, 1));
    core.dcci(m.data);
    core.store(m.data, core.load(m.data) + 1);  // WRONG: counts_by_load_and_store
    core.dcci(m.data);
}

// Two rows for each core; the split rounds up.
void tiles_overlap_by_a_row(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, 3 * 16, 1);
    const std::size_t rows = wrong ? 3 : 2;
    float* const begin = m.floats() + static_cast<std::size_t>(core.index()) * 2 * 16;
    core.data_copy(gm(begin, rows * 16), tile, rows * 16);  // WRONG: tiles_overlap_by_a_row
}

void everybody_puts_to_slot_zero(Core& core, const Memory& m, bool wrong) {
    const int slot = wrong ? 0 : core.my_pe();
    if (core.my_pe() != 2) core.put(m.data + 64 * slot, m.data + 512, words, 2);  // WRONG: everybody_puts_to_slot_zero
}

void one_core_forgets_to_add(Core& core, const Memory& m, bool wrong) {
    const bool adds = !wrong || core.index() == 0;
    const auto tile = filled_tile(core, 16, 1);
    if (adds) core.set_atomic_add<float>();
    core.data_copy(gm(m.floats(), 16), tile, 16);  // WRONG: one_core_forgets_to_add
    if (adds) core.clear_atomic();
}

// Core 0 clears the sum; the others must wait for that.
void clears_while_others_add(Core& core, const Memory& m, bool wrong) {
    const auto tile = filled_tile(core, 16, 0);
    if (core.index() == 0) core.data_copy(gm(m.floats(), 16), tile, 16);  // WRONG: clears_while_others_add
    if (core.index() == 0) order<Pipe::copy_out, Pipe::scalar>(core);
    if (!wrong) core.core_barrier();
    core.set_atomic_add<float>();
    core.data_copy(gm(m.floats(), 16), tile, 16);  // WRONG: clears_while_others_add
    core.clear_atomic();
}

// The counter is reset for the next launch while core 1 still counts.
void resets_the_counter_too_early(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 1) core.atomic_fetch_add(m.data, 1);  // WRONG: resets_the_counter_too_early
    if (!wrong) core.core_barrier();
    if (core.index() == 1) return;
    core.store(m.data, 0);  // WRONG: resets_the_counter_too_early
    core.dcci(m.data);
}

// Core 0 sets the counter to zero before it counts; the others may have counted by then.
void zeroes_then_counts(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.data, 0);  // WRONG: zeroes_then_counts
        core.dcci(m.data);
    }
    if (!wrong) core.core_barrier();
    core.atomic_fetch_add(m.data, 1);  // WRONG: zeroes_then_counts
}

// PE 1 prepares its buffer when the message of PE 0 may have arrived.
void initialises_what_the_peer_puts(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        if (!wrong) core.signal_wait_until(m.signal(0), Compare::equal, 1, 1);
        return core.put(m.data, m.data + 512, words, 1);  // WRONG: initialises_what_the_peer_puts
    }
    core.store(m.data, 0);  // WRONG: initialises_what_the_peer_puts
    core.dcci(m.data);
    core.signal_set_on(m.signal(0), 1, 0);
}

// The word names the last owner of the lock.
void stores_behind_the_unlock(Core& core, const Memory& m, bool wrong) {
    while (core.atomic_compare_swap(m.signal(0), 0, 1) != 0) core.yield();
    if (wrong) core.signal_set(m.signal(0), 0);
    core.store(m.data, static_cast<Word>(core.index()));  // WRONG: stores_behind_the_unlock
    core.dcci(m.data);
    if (!wrong) core.signal_set(m.signal(0), 0);
}

// The pauses between the polls grow, up to a bound. Fails only if the row comes later.
void backs_off_and_goes_on(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) {
        core.put(m.data, m.data + 512, 8, 0);  // WRONG: backs_off_and_goes_on
        core.fence();
        return core.signal_set_on(m.signal(0), 1, 0);
    }
    bool arrived = false;
    for (int pause = 1; pause <= 16 && !arrived; pause *= 2) {
        arrived = core.signal_fetch(m.signal(0)) == 1;
        for (int i = 0; i < pause && !arrived; ++i) core.yield();
    }
    if (!arrived && !wrong) return;
    core.data_copy(core.ub_alloc<float>(16), gm(m.floats(), 16), 16);  // WRONG: backs_off_and_goes_on
}

// Fails only if the wait times out.
void ignores_a_timeout(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) {
        core.put(m.data, m.data + 512, 8, 0);  // WRONG: ignores_a_timeout
        core.fence();
        return core.signal_set_on(m.signal(0), 1, 0);
    }
    const WaitLimit limit{std::chrono::seconds(1), 1};
    const bool arrived = core.signal_wait_for(m.signal(0), Compare::equal, 1, limit).ok();
    if (!arrived && !wrong) return;
    core.data_copy(core.ub_alloc<float>(16), gm(m.floats(), 16), 16);  // WRONG: ignores_a_timeout
}

}  // namespace

std::vector<Kernel> race_kernels() {
    return {
        {"copies_without_waiting", Hazard::dma_race, two_pes, copies_without_waiting},
        {"gets_before_the_wait", Hazard::dma_race, two_pes, gets_before_the_wait},
        {"message_without_credit", Hazard::dma_race, two_pes, message_without_credit, single_runs},
        {"credit_before_the_copy_ends", Hazard::dma_race, two_pes, credit_before_the_copy_ends},
        {"all_gather_without_a_barrier", Hazard::dma_race, three_pes, all_gather_without_a_barrier},
        {"waits_for_the_wrong_neighbour", Hazard::dma_race, three_pes, waits_for_the_wrong_neighbour},
        {"missing_join_behind_the_wait", Hazard::dma_race, two_pes_of_two_cores, missing_join_behind_the_wait},
        {"reads_while_others_add", Hazard::dma_race, two_cores, reads_while_others_add},
        {"stores_into_the_source_of_a_put", Hazard::dma_race, two_pes_of_two_cores, stores_into_the_source_of_a_put},
        {"counts_by_load_and_store", Hazard::write_race, two_cores, counts_by_load_and_store, other_runs, nullptr,
         nullptr, "H9"},
        {"tiles_overlap_by_a_row", Hazard::write_race, two_cores, tiles_overlap_by_a_row},
        {"everybody_puts_to_slot_zero", Hazard::write_race, three_pes, everybody_puts_to_slot_zero},
        {"one_core_forgets_to_add", Hazard::write_race, two_cores, one_core_forgets_to_add},
        {"clears_while_others_add", Hazard::write_race, two_cores, clears_while_others_add},
        {"resets_the_counter_too_early", Hazard::write_race, two_cores, resets_the_counter_too_early},
        {"zeroes_then_counts", Hazard::write_race, two_cores, zeroes_then_counts},
        {"initialises_what_the_peer_puts",
         Hazard::write_race,
         two_pes,
         initialises_what_the_peer_puts,
         {},
         nullptr,
         nullptr,
         "H9"},
        {"stores_behind_the_unlock", Hazard::write_race, two_cores, stores_behind_the_unlock},
        {"backs_off_and_goes_on", Hazard::dma_race, two_pes, backs_off_and_goes_on, other_runs},
        {"ignores_a_timeout", Hazard::dma_race, two_pes, ignores_a_timeout, single_runs},
    };
}

}  // namespace npushmem::npu::corpus
