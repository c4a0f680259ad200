// SPDX-License-Identifier: BSD-3-Clause
// Torn lines and lost updates: dirty lines are written back whole (H9).
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

void a_word_for_each_core(Core& core, const Memory& m, bool wrong) {
    Word* const mine = m.data + static_cast<std::size_t>(core.index()) * (wrong ? 1 : words_per_line);
    core.store(mine, 1);  // WRONG: a_word_for_each_core
    core.dcci(mine);      // WRONG: a_word_for_each_core
}

// PE 0 collects one word of each PE.
void a_word_for_each_pe(Core& core, const Memory& m, bool wrong) {
    const std::size_t apart = wrong ? 1 : words_per_line;
    Word* const mine = core.remote(m.data, 0) + static_cast<std::size_t>(core.my_pe()) * apart;
    core.store(mine, 1);  // WRONG: a_word_for_each_pe
    core.dcci(mine);      // WRONG: a_word_for_each_pe
}

void arrivals_share_a_line(Core& core, const Memory& m, bool wrong) {
    const auto arrival = [&](int pe) { return wrong ? m.signal(0) + pe : m.signal(static_cast<std::size_t>(pe)); };
    if (core.my_pe() != 2) return core.signal_set_on(arrival(core.my_pe()), 1, 2);  // WRONG: arrivals_share_a_line
    for (int pe = 0; pe < 2; ++pe) core.signal_wait_until(arrival(pe), Compare::equal, 1, pe);
}

// PE 1 counts in the line into which PE 0 signals.
void statistics_beside_a_signal(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) return core.signal_set_on(m.signal(0), 1, 1);  // WRONG: statistics_beside_a_signal
    Word* const waits = wrong ? m.signal(0) + 1 : m.signal(1);
    core.store(waits, core.load(waits) + 1);  // WRONG: statistics_beside_a_signal
    core.dcci(waits);                         // WRONG: statistics_beside_a_signal
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
}

// Core 0 takes tickets, core 1 stores its result in the same line.
void result_beside_a_ticket(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        for (int i = 0; i < 3; ++i) core.atomic_fetch_add(m.data, 1);  // WRONG: result_beside_a_ticket
        return;
    }
    Word* const result = m.data + (wrong ? 4 : words_per_line);
    core.store(result, 9);  // WRONG: result_beside_a_ticket
    core.dcci(result);      // WRONG: result_beside_a_ticket
}

// The barrier is there, but core 0 keeps its store in the cache until the end.
void flushes_behind_the_barrier(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.data, 1);  // WRONG: flushes_behind_the_barrier
        if (!wrong) core.dcci(m.data);
    }
    core.core_barrier();
    if (core.index() == 1) {
        core.store(m.data + 1, 2);  // WRONG: flushes_behind_the_barrier
        core.dcci(m.data + 1);      // WRONG: flushes_behind_the_barrier
    }
    core.core_barrier();
    if (core.index() == 0 && wrong) core.dcci(m.data);  // WRONG: flushes_behind_the_barrier
}

// MTE3 writes the first half of the line, S the second half.
void copy_beside_a_dirty_word(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.data + (wrong ? 7 : 8), 1);     // WRONG: copy_beside_a_dirty_word
        return core.dcci(m.data + (wrong ? 7 : 8));  // WRONG: copy_beside_a_dirty_word
    }
    core.data_copy(gm(m.floats(), 8), filled_tile(core, 8, 1), 8);  // WRONG: copy_beside_a_dirty_word
}

// The line is stored to before the put of the peer, and cleaned after it.
void cleans_an_old_line(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.signal_wait_until(m.signal(1), Compare::equal, 1, 1);
        return core.put_signal(m.data, m.data + 512, 1, m.signal(0), 1, 1);  // WRONG: cleans_an_old_line
    }
    core.store(m.data + 1, 7);
    if (!wrong) core.dcci(m.data);
    core.signal_set_on(m.signal(1), 1, 0);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    if (wrong) core.dcci(m.data);  // WRONG: cleans_an_old_line
}

// Four cores, two bytes each.
void flags_of_two_bytes(Core& core, const Memory& m, bool wrong) {
    auto* const done = reinterpret_cast<std::uint16_t*>(m.data) + core.index() * (wrong ? 1 : 32);
    core.store(done, 1);  // WRONG: flags_of_two_bytes
    core.dcci(done);      // WRONG: flags_of_two_bytes
    core.core_barrier();
}

// PE 2 reads a line of which PE 0 and PE 1 write one half each.
void halves_of_a_line_of_a_third_pe(Core& core, const Memory& m, bool wrong) {
    const auto half_of = [&](int pe) { return m.data + (wrong ? 4 : 8) * pe; };
    if (core.my_pe() != 2) {
        Word* const mine = core.remote(half_of(core.my_pe()), 2);
        for (int i = 0; i < 4; ++i) core.store(mine + i, 1);  // WRONG: halves_of_a_line_of_a_third_pe
        core.dcci(mine);                                      // WRONG: halves_of_a_line_of_a_third_pe
        return core.signal_add_on(m.signal(0), 1, 2);
    }
    core.signal_wait_until(m.signal(0), Compare::equal, 2);
    use(core.load(half_of(0)) + core.load(half_of(1)));
}

// quiet cleans the cache as dcci does.
void torn_by_quiet(Core& core, const Memory& m, bool wrong) {
    const auto index = static_cast<std::size_t>(core.index());
    core.store(m.data + (wrong ? index : index * words_per_line), 1);  // WRONG: torn_by_quiet
    core.quiet();                                                      // WRONG: torn_by_quiet
}

// The rows of two PEs meet in a line: 12 words each.
void last_line_of_a_row(Core& core, const Memory& m, bool wrong) {
    Word* const mine = core.remote(m.data, 0) + (wrong ? 12 : 16) * core.my_pe();
    for (int i = 0; i < 12; ++i) core.store(mine + i, 1);  // WRONG: last_line_of_a_row
    core.dcci(mine, 12 * sizeof(Word));                    // WRONG: last_line_of_a_row
}

}  // namespace

std::vector<Kernel> line_kernels() {
    return {
        {"a_word_for_each_core", Hazard::lost_update, two_cores, a_word_for_each_core},
        {"a_word_for_each_pe", Hazard::lost_update, two_pes, a_word_for_each_pe},
        {"arrivals_share_a_line", Hazard::lost_update, three_pes, arrivals_share_a_line},
        {"statistics_beside_a_signal",
         Hazard::lost_update,
         two_pes,
         statistics_beside_a_signal,
         {},
         nullptr,
         nullptr,
         {},
         true},
        {"result_beside_a_ticket",
         Hazard::lost_update,
         two_cores,
         result_beside_a_ticket,
         {},
         nullptr,
         nullptr,
         {},
         true},
        {"flushes_behind_the_barrier", Hazard::lost_update, two_cores, flushes_behind_the_barrier},
        {"copy_beside_a_dirty_word",
         Hazard::lost_update,
         two_cores,
         copy_beside_a_dirty_word,
         {},
         nullptr,
         nullptr,
         {},
         true},
        {"cleans_an_old_line", Hazard::lost_update, two_pes, cleans_an_old_line},
        {"flags_of_two_bytes", Hazard::lost_update, four_cores, flags_of_two_bytes},
        {"halves_of_a_line_of_a_third_pe", Hazard::lost_update, three_pes, halves_of_a_line_of_a_third_pe},
        {"torn_by_quiet", Hazard::lost_update, two_cores, torn_by_quiet},
        {"last_line_of_a_row", Hazard::lost_update, two_pes, last_line_of_a_row},
    };
}

}  // namespace npushmem::npu::corpus
