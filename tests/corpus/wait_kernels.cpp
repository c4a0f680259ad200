// SPDX-License-Identifier: BSD-3-Clause
// Waits that never end (H17): lost and overtaken signals, resets, words that return to an old value, locks.
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

void both_wait_first(Core& core, const Memory& m, bool wrong) {
    const int peer = 1 - core.my_pe();
    if (!wrong) core.signal_set_on(m.signal(0), 1, peer);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, peer);  // WRONG: both_wait_first
    if (wrong) core.signal_set_on(m.signal(0), 1, peer);
}

// Two PEs arrive at PE 2; the second arrival must not replace the first.
void counts_arrivals_by_set(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 2) {
        core.signal_wait_until(m.signal(0), Compare::equal, 2);  // WRONG: counts_arrivals_by_set
    } else if (wrong) {
        core.signal_set_on(m.signal(0), 1, 2);
    } else {
        core.signal_add_on(m.signal(0), 1, 2);
    }
}

// Nothing orders the signals of two rounds: the older one may arrive last.
void one_word_for_all_rounds(Core& core, const Memory& m, bool wrong) {
    const int next = (core.my_pe() + 1) % core.n_pes();
    const int previous = (core.my_pe() + core.n_pes() - 1) % core.n_pes();
    for (Word round = 1; round <= 2; ++round) {
        if (!wrong) core.fence();
        core.signal_set_on(m.signal(0), round, next);
        core.signal_set_on(m.signal(1), round, previous);
        core.signal_wait_until(m.signal(0), Compare::greater_equal, round, previous);  // WRONG: one_word_for_all_rounds
        core.signal_wait_until(m.signal(1), Compare::greater_equal, round, next);      // WRONG: one_word_for_all_rounds
    }
}

// PE 1 resets the word after each message; the second message may have arrived by then.
void resets_a_word_that_counts(Core& core, const Memory& m, bool wrong) {
    for (Word message = 1; message <= 2; ++message) {
        if (core.my_pe() == 0) {
            if (!wrong && message > 1) core.signal_wait_until(m.signal(1), Compare::equal, 1, 1);
            core.signal_set_on(m.signal(0), 1, 1);
            core.fence();
        } else {
            core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);  // WRONG: resets_a_word_that_counts
            core.signal_set(m.signal(0), 0);
            if (message == 1) core.signal_set_on(m.signal(1), 1, 0);
        }
    }
}

// The word may be 2 when PE 1 looks at it for the first time.
void waits_for_one_exact_value(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.signal_set_on(m.signal(0), 1, 1);
        core.fence();
        return core.signal_set_on(m.signal(0), 2, 1);
    }
    const Compare reached = wrong ? Compare::equal : Compare::greater_equal;
    core.signal_wait_until(m.signal(0), reached, 1, 0);  // WRONG: waits_for_one_exact_value
    core.signal_wait_until(m.signal(0), reached, 2, 0);
}

// ABA: the word has its first value again when the waiter looks.
void toggles_a_word(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.signal_set_on(m.signal(0), 1, 1);
        core.fence();
        return core.signal_set_on(m.signal(0), wrong ? 0 : 2, 1);
    }
    core.signal_wait_until(m.signal(0), Compare::not_equal, 0, 0);  // WRONG: toggles_a_word
}

void waits_for_another_flag(Core& core, const Memory& m, bool wrong) {
    core.data_copy(core.ub_alloc<float>(16), gm(m.floats(), 16), 16);
    core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
    if (wrong) core.wait_flag<Pipe::copy_in, Pipe::scalar>(1);  // WRONG: waits_for_another_flag
    core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
}

// MTE2 waits until V has freed the buffer, and V waits for the data of MTE2.
void pipes_wait_for_each_other(Core& core, const Memory& m, bool wrong) {
    const auto tile = core.ub_alloc<float>(16);
    if (!wrong) core.set_flag<Pipe::vector, Pipe::copy_in>(0);
    for (int round = 0; round < 2; ++round) {
        core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
        core.data_copy(tile, gm(m.floats() + 16 * round, 16), 16);
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);  // WRONG: pipes_wait_for_each_other
        core.add_scalar(tile, tile, 1, 16);
        core.set_flag<Pipe::vector, Pipe::copy_in>(0);
    }
    if (!wrong) core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
}

// A ring: each PE waits for its left neighbour and must signal its right one.
void signals_the_wrong_neighbour(Core& core, const Memory& m, bool wrong) {
    const int right = (core.my_pe() + 1) % core.n_pes();
    const int left = (core.my_pe() + core.n_pes() - 1) % core.n_pes();
    core.signal_set_on(m.signal(static_cast<std::size_t>(core.my_pe())), 1, wrong ? left : right);
    Word* const arrival = m.signal(static_cast<std::size_t>(left));
    core.signal_wait_until(arrival, Compare::equal, 1, left);  // WRONG: signals_the_wrong_neighbour
}

void no_signal_without_tokens(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        const Word tokens = core.load(m.data);
        if (tokens > 0 || !wrong) core.signal_set_on(m.signal(0), tokens + 1, 1);
        return;
    }
    core.signal_wait_until(m.signal(0), Compare::greater_equal, 1, 0);  // WRONG: no_signal_without_tokens
}

void returns_with_the_lock(Core& core, const Memory& m, bool wrong) {
    while (core.atomic_compare_swap(m.signal(0), 0, 1) != 0) core.yield();  // WRONG: returns_with_the_lock
    core.dcci(m.data);
    const bool nothing_to_do = core.load(m.data) == 0;
    if (nothing_to_do && wrong) return;
    core.signal_set(m.signal(0), 0);
}

void signals_its_own_copy(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) {
        core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);  // WRONG: signals_its_own_copy
    } else if (wrong) {
        core.signal_set(m.signal(0), 1);
    } else {
        core.signal_set_on(m.signal(0), 1, 1);
    }
}

void waits_for_itself(Core& core, const Memory& m, bool wrong) {
    for (int pe = 0; pe < core.n_pes(); ++pe)
        if (pe != core.my_pe()) core.signal_add_on(m.signal(0), 1, pe);
    const int expected = wrong ? core.n_pes() : core.n_pes() - 1;
    core.signal_wait_until(m.signal(0), Compare::equal, static_cast<Word>(expected));  // WRONG: waits_for_itself
}

// Both cores wait for the word, and core 0 resets it.
void resets_before_all_have_seen_it(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        if (core.index() == 0) core.signal_set_on(m.signal(0), 1, 1);
        return;
    }
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);  // WRONG: resets_before_all_have_seen_it
    if (!wrong) core.core_barrier();
    if (core.index() == 0) core.signal_set(m.signal(0), 0);
}

void take(Core& core, Word* lock) {
    while (core.atomic_compare_swap(lock, 0, 1) != 0) core.yield();  // WRONG: locks_in_opposite_order
}

// Fails only if each core takes its first lock before either takes its second one.
void locks_in_opposite_order(Core& core, const Memory& m, bool wrong) {
    const bool swapped = wrong && core.index() == 1;
    take(core, m.signal(swapped ? 1 : 0));
    take(core, m.signal(swapped ? 0 : 1));
    core.signal_set(m.signal(0), 0);
    core.signal_set(m.signal(1), 0);
}

// A barrier of two cores by a counter and a gate. Fails only if a released core arrives again before the reset.
void resets_behind_the_release(Core& core, const Memory& m, bool wrong) {
    Word* const counter = m.signal(0);
    Word* const gate = m.signal(1);
    for (Word round = 1; round <= 2; ++round) {
        if (core.atomic_fetch_add(counter, 1) == 1) {
            if (!wrong) core.atomic_swap(counter, 0);
            core.signal_set(gate, round);
            if (wrong) core.atomic_swap(counter, 0);
        }
        core.signal_wait_until(gate, Compare::greater_equal, round);  // WRONG: resets_behind_the_release
    }
}

// The producer adds credits, the consumer takes them. Fails only if a credit comes between the fetch and the set.
void takes_credits_by_fetch_and_set(Core& core, const Memory& m, bool wrong) {
    Word* const credits = m.signal(0);
    for (int message = 0; message < 2; ++message) {
        if (core.index() == 0) {
            core.signal_add(credits, 1);
            continue;
        }
        core.signal_wait_until(credits, Compare::greater_equal, 1);  // WRONG: takes_credits_by_fetch_and_set
        if (wrong)
            core.signal_set(credits, core.signal_fetch(credits) - 1);
        else
            core.atomic_fetch_add(credits, Word{0} - 1);
    }
}

// ABA: core 1 claims the slot by its number, which another claim and a release have brought back in the meantime.
void claims_by_an_old_number(Core& core, const Memory& m, bool wrong) {
    Word* const head = m.signal(0);
    const Word step = wrong ? 0 : 2;  // a release with a new generation
    if (core.index() == 0) {
        core.atomic_fetch_add(head, 1);               // claimed
        core.atomic_fetch_add(head, step - Word{1});  // released
        return;
    }
    core.signal_wait_until(head, Compare::not_equal, 0);  // WRONG: claims_by_an_old_number
}

// Messages of two PEs: PE 2 takes the number of PE 0 from the word that PE 1 may have replaced.
void two_senders_share_a_word(Core& core, const Memory& m, bool wrong) {
    const auto me = static_cast<std::size_t>(core.my_pe());
    if (core.my_pe() != 2) return core.signal_set_on(m.signal(wrong ? 0 : me), me + 1, 2);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);              // WRONG: two_senders_share_a_word
    core.signal_wait_until(m.signal(wrong ? 0 : 1), Compare::equal, 2, 1);  // WRONG: two_senders_share_a_word
}

// Core 0 reads the flag some times, then registers and sleeps. Fails only if the flag is set between the two.
void sleeps_behind_its_last_poll(Core& core, const Memory& m, bool wrong) {
    Word* const flag = m.signal(0);
    Word* const sleeper = m.signal(1);
    Word* const wake = m.signal(2);
    if (core.index() == 1) {
        core.signal_set(flag, 1);
        if (core.signal_fetch(sleeper) == 1) core.signal_set(wake, 1);
        return;
    }
    for (int poll = 0; poll < 32; ++poll)
        if (core.signal_fetch(flag) == 1) return;
    core.signal_set(sleeper, 1);
    if (!wrong && core.signal_fetch(flag) == 1) return;
    core.signal_wait_until(wake, Compare::equal, 1);  // WRONG: sleeps_behind_its_last_poll
}

}  // namespace

std::vector<Kernel> wait_kernels() {
    return {
        {"both_wait_first", Hazard::deadlock, two_pes, both_wait_first},
        {"counts_arrivals_by_set", Hazard::deadlock, three_pes, counts_arrivals_by_set},
        {"one_word_for_all_rounds",
         Hazard::deadlock,
         three_pes,
         one_word_for_all_rounds,
         other_runs,
         nullptr,
         nullptr,
         {},
         true},
        {"resets_a_word_that_counts", Hazard::deadlock, two_pes, resets_a_word_that_counts, drawn_runs},
        {"waits_for_one_exact_value", Hazard::deadlock, two_pes, waits_for_one_exact_value, drawn_runs},
        {"toggles_a_word", Hazard::deadlock, two_pes, toggles_a_word, drawn_runs},
        {"waits_for_another_flag", Hazard::deadlock, one_core, waits_for_another_flag},
        {"pipes_wait_for_each_other",
         Hazard::deadlock,
         one_core,
         pipes_wait_for_each_other,
         {},
         nullptr,
         nullptr,
         "H4"},
        {"signals_the_wrong_neighbour", Hazard::deadlock, three_pes, signals_the_wrong_neighbour},
        {"no_signal_without_tokens", Hazard::deadlock, two_pes, no_signal_without_tokens},
        {"returns_with_the_lock", Hazard::deadlock, two_cores, returns_with_the_lock},
        {"signals_its_own_copy", Hazard::deadlock, two_pes, signals_its_own_copy},
        {"waits_for_itself", Hazard::deadlock, three_pes, waits_for_itself},
        {"resets_before_all_have_seen_it", Hazard::deadlock, two_pes_of_two_cores, resets_before_all_have_seen_it,
         drawn_runs},
        {"locks_in_opposite_order", Hazard::deadlock, two_cores, locks_in_opposite_order, single_runs},
        {"resets_behind_the_release", Hazard::deadlock, two_cores, resets_behind_the_release, single_runs},
        {"takes_credits_by_fetch_and_set", Hazard::deadlock, two_cores, takes_credits_by_fetch_and_set, single_runs},
        {"claims_by_an_old_number", Hazard::deadlock, two_cores, claims_by_an_old_number},
        {"sleeps_behind_its_last_poll", Hazard::deadlock, two_cores, sleeps_behind_its_last_poll, other_runs},
        {"two_senders_share_a_word",
         Hazard::deadlock,
         three_pes,
         two_senders_share_a_word,
         drawn_runs,
         nullptr,
         nullptr,
         {},
         true},
    };
}

}  // namespace npushmem::npu::corpus
