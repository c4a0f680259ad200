// SPDX-License-Identifier: BSD-3-Clause
// Loads that return an old line of the scalar cache (H7), and calls that have nothing to do (H12).
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

// ---- H7 -----------------------------------------------------------------------------------------------------------

// PE 1 looks at the message before it waits for it.
void header_read_before_the_wait(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.signal_wait_until(m.signal(1), Compare::equal, 1, 1);
        return core.put_signal(m.data, m.data + 512, 8, m.signal(0), 1, 1);
    }
    use(core.load(m.data));
    core.signal_set_on(m.signal(1), 1, 0);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    if (!wrong) core.dcci(m.data);
    use(core.load(m.data));  // WRONG: header_read_before_the_wait
}

// The writer announces the length first, and the payload of the same line later.
void payload_in_the_line_of_its_length(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.data, 1);
        core.dcci(m.data);
        core.signal_set(m.signal(0), 1);
        core.signal_wait_until(m.signal(1), Compare::equal, 1);
        core.store(m.data + 1, 42);
        core.dcci(m.data);
        return core.signal_set(m.signal(0), 2);
    }
    core.signal_wait_until(m.signal(0), Compare::greater_equal, 1);
    use(core.load(m.data));
    core.signal_set(m.signal(1), 1);
    core.signal_wait_until(m.signal(0), Compare::equal, 2);
    if (!wrong) core.dcci(m.data);
    use(core.load(m.data + 1));  // WRONG: payload_in_the_line_of_its_length
}

void polls_without_dcci(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) return core.signal_set_on(m.signal(0), 1, 1);
    while (core.load(m.signal(0)) != 1) {  // WRONG: polls_without_dcci
        if (!wrong) core.dcci(m.signal(0));
        core.yield();
    }
}

// A ring of two slots; from the third message on, the lines of the slots are cached.
void second_lap_of_a_ring(Core& core, const Memory& m, bool wrong) {
    for (Word message = 1; message <= 4; ++message) {
        Word* const slot = m.data + message % 2 * words_per_line;
        if (core.my_pe() == 0) {
            if (message > 2) core.signal_wait_until(m.signal(1), Compare::greater_equal, message - 2, 1);
            core.put_signal(slot, m.data + 512, words_per_line, m.signal(0), message, 1);
        } else {
            core.signal_wait_until(m.signal(0), Compare::greater_equal, message, 0);
            if (!wrong) core.dcci(slot);
            use(core.load(slot));  // WRONG: second_lap_of_a_ring
            core.signal_add_on(m.signal(1), 1, 0);
        }
    }
}

// Core 1 reads the result before and after core 0 improves it.
void sees_the_first_estimate_again(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 1) use(core.load(m.data));
    core.core_barrier();
    if (core.index() == 0) {
        core.store(m.data, 5);
        core.dcci(m.data);
    }
    core.core_barrier();
    if (core.index() == 0) return;
    if (!wrong) core.dcci(m.data);
    use(core.load(m.data));  // WRONG: sees_the_first_estimate_again
}

// Copies of the same core bypass its cache, too.
void own_copy_behind_the_cache(Core& core, const Memory& m, bool wrong) {
    const float before = core.load(m.floats());
    core.data_copy(gm(m.floats(), 16), filled_tile(core, 16, before + 1), 16);
    order<Pipe::copy_out, Pipe::scalar>(core);
    if (!wrong) core.dcci(m.floats());
    core.store(m.floats() + 512, core.load(m.floats()));  // WRONG: own_copy_behind_the_cache
}

void gets_into_a_cached_buffer(Core& core, const Memory& m, bool wrong) {
    use(core.load(m.data));
    core.get(m.data, m.data + 512, 8, 1 - core.my_pe());
    order<Pipe::copy_in, Pipe::scalar>(core);
    if (!wrong) core.dcci(m.data);
    use(core.load(m.data));  // WRONG: gets_into_a_cached_buffer
}

// Atomics act on memory, not on the cached copy.
void counter_kept_in_the_cache(Core& core, const Memory& m, bool wrong) {
    use(core.load(m.data));
    core.core_barrier();
    core.atomic_fetch_add(core.index() == 0 ? m.data : m.data + 64, 1);
    core.core_barrier();
    if (core.index() == 0) return;
    if (!wrong) core.dcci(m.data);
    use(core.load(m.data));  // WRONG: counter_kept_in_the_cache
}

// The payload has two lines.
void invalidates_the_first_line_only(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        core.signal_wait_until(m.signal(1), Compare::equal, 1, 1);
        return core.put_signal(m.data, m.data + 512, 16, m.signal(0), 1, 1);
    }
    use(core.load(m.data) + core.load(m.data + 8));
    core.signal_set_on(m.signal(1), 1, 0);
    core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    core.dcci(m.data, wrong ? 8 : 128);
    use(core.load(m.data));
    use(core.load(m.data + 8));  // WRONG: invalidates_the_first_line_only
}

// ---- H12 ----------------------------------------------------------------------------------------------------------

void invalidates_in_every_round(Core& core, const Memory& m, bool wrong) {
    Word sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        if (wrong || i == 0) core.dcci(m.data + 64, 64);  // WRONG: invalidates_in_every_round
        sum += core.load(m.data + i);
    }
    core.store(m.data + 512, sum);
}

void quiet_behind_quiet(Core& core, const Memory& m, bool wrong) {
    core.put(m.data, m.data + 512, 8, 1 - core.my_pe());
    core.quiet();
    if (wrong) core.quiet();  // WRONG: quiet_behind_quiet
    core.signal_set_on(m.signal(0), 1, 1 - core.my_pe());
}

// Cleans the line twice: once for the store, once for the signal.
void cleans_a_line_twice(Core& core, const Memory& m, bool wrong) {
    core.store(m.data, 1);
    core.dcci(m.data);
    if (wrong) core.dcci(m.data);  // WRONG: cleans_a_line_twice
    core.signal_set(m.signal(0), 1);
}

// The barrier of cores needs no quiet of its own behind the one that completes the put.
void quiet_behind_a_barrier(Core& core, const Memory& m, bool wrong) {
    core.put(m.data, m.data + 512, 8, 1 - core.my_pe());
    core.quiet();
    core.core_barrier();
    if (wrong) core.quiet();  // WRONG: quiet_behind_a_barrier
}

}  // namespace

std::vector<Kernel> cache_kernels() {
    return {
        {"header_read_before_the_wait", Hazard::stale_read, two_pes, header_read_before_the_wait},
        {"payload_in_the_line_of_its_length", Hazard::stale_read, two_cores, payload_in_the_line_of_its_length},
        {"polls_without_dcci", Hazard::stale_read, two_pes, polls_without_dcci, "jobs"},
        {"second_lap_of_a_ring", Hazard::stale_read, two_pes, second_lap_of_a_ring},
        {"sees_the_first_estimate_again", Hazard::stale_read, two_cores, sees_the_first_estimate_again},
        {"own_copy_behind_the_cache", Hazard::stale_read, one_core, own_copy_behind_the_cache},
        {"gets_into_a_cached_buffer", Hazard::stale_read, two_pes, gets_into_a_cached_buffer},
        {"counter_kept_in_the_cache", Hazard::stale_read, two_cores, counter_kept_in_the_cache},
        {"invalidates_the_first_line_only", Hazard::stale_read, two_pes, invalidates_the_first_line_only},
        {"invalidates_in_every_round", Hazard::redundant, one_core, invalidates_in_every_round},
        {"quiet_behind_quiet", Hazard::redundant, two_pes, quiet_behind_quiet},
        {"cleans_a_line_twice", Hazard::redundant, one_core, cleans_a_line_twice},
        {"quiet_behind_a_barrier", Hazard::redundant, two_pes, quiet_behind_a_barrier},
    };
}

}  // namespace npushmem::npu::corpus
