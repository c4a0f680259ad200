// SPDX-License-Identifier: BSD-3-Clause
// Several writers: of one line, of one range, and what a fence says to third PEs.
#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using test::expect_caught;
using test::expect_clean;
using test::two_cores;
using test::two_pes;

using Words = std::uint64_t*;
constexpr std::size_t row = 16;

// Each of two cores stores its word, and nothing orders them.
void store_half(Core& core, Words line, int half, std::size_t apart) {
    core.store(line + apart * static_cast<std::size_t>(half), 1);
    core.dcci(line + apart * static_cast<std::size_t>(half));  // blame: H9 HalvesOfALine
}

TEST(H9LostUpdate, HalvesOfALine) {
    for (const std::size_t apart : {1U, 8U}) {
        const auto cores = [&](Core& core, Words data) { store_half(core, data, core.index(), apart); };
        const auto pes = [&](Core& core, Words data) { store_half(core, core.remote(data, 0), core.my_pe(), apart); };
        if (apart == 1) expect_caught(Hazard::lost_update, "H9 HalvesOfALine", two_cores, cores);
        if (apart == 1) expect_caught(Hazard::lost_update, "H9 HalvesOfALine", two_pes, pes);
        if (apart == 8) expect_clean(two_cores, cores);
        if (apart == 8) expect_clean(two_pes, pes);
    }
}

TEST(H9LostUpdate, HalvesOfALineInTurnAreRight) {
    expect_clean(two_cores, [](Core& core, Words data) {
        if (core.index() == 0) store_half(core, data, 0, 1);
        core.core_barrier();
        if (core.index() == 1) store_half(core, data, 1, 1);
    });
}

// One core adds atomically, the other loads, stores and writes back.
test::Setup beside_an_atomic(int storing, std::size_t apart, std::function<void(Core&, Words)>& kernel) {
    kernel = [storing, apart](Core& core, Words data) {
        if (core.index() != storing) return static_cast<void>(core.atomic_fetch_add(data, 1));
        const std::uint64_t seen = core.load(data + apart);
        core.store(data + apart, seen + 1), core.dcci(data + apart);  // blame: beside an atomic
    };
    return two_cores;
}

TEST(H9LostUpdate, StoresBesideAnAtomic) {
    std::function<void(Core&, Words)> kernel;
    for (const int storing : {0, 1}) {
        expect_caught(Hazard::lost_update, "beside an atomic", beside_an_atomic(storing, 1, kernel),
                      [&](Core& core, Words data) { kernel(core, data); });
        expect_clean(beside_an_atomic(storing, 8, kernel), [&](Core& core, Words data) { kernel(core, data); });
    }
}

TEST(H14WriteRace, AnIncrementByLoadAndStoreBesideAnAtomic) {
    std::function<void(Core&, Words)> kernel;
    for (const int storing : {0, 1}) {
        expect_caught(Hazard::write_race, "beside an atomic", beside_an_atomic(storing, 0, kernel),
                      [&](Core& core, Words data) { kernel(core, data); });
    }
    expect_clean(two_cores, [](Core& core, Words data) { core.atomic_fetch_add(data, 1); });
}

// A counter that its reader resets: a PE that saw it complete may store to it.
TEST(H14WriteRace, ACounterThatIsResetIsRight) {
    for (const int reader : {0, 1}) {
        expect_clean(two_cores, [&](Core& core, Words data) {
            if (core.index() != reader) return static_cast<void>(core.atomic_fetch_add(data, 1));
            do core.dcci(data);
            while (core.load(data) != 1);
            core.store(data, 0);
            core.dcci(data);
        });
    }
}

void add_row(Core& core, Words data, bool atomic) {
    auto* floats = reinterpret_cast<float*>(data);
    const auto tile = core.ub_alloc<float>(row);
    core.fill(tile, 1, row);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    if (atomic) core.set_atomic_add<float>();
    core.data_copy(gm(floats, row), tile, row);  // blame: H14 rows
    if (atomic) core.clear_atomic();
}

void wait_for_rows(Core& core) {
    core.set_flag<Pipe::copy_out, Pipe::scalar>(1);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(1);
}

TEST(H14WriteRace, CopiesThatAddMayMeet) {
    const auto on_cores = [](bool all) {
        return [all](Core& core, Words data) { add_row(core, data, all || core.index() == 0); };
    };
    const auto on_pes = [](bool all) {
        return [all](Core& core, Words data) { add_row(core, core.remote(data, 0), all || core.my_pe() == 0); };
    };
    expect_clean(two_cores, on_cores(true));
    expect_clean(two_pes, on_pes(true));
    expect_caught(Hazard::write_race, "H14 rows", two_cores, on_cores(false));
    expect_caught(Hazard::write_race, "H14 rows", two_pes, on_pes(false));
    // Of one core, in one pipe.
    expect_clean({}, [](Core& core, Words data) {
        add_row(core, data, true);
        add_row(core, data, true);
    });
}

// Core 0 clears a row before it adds to it: core 1 may not add before that, whatever core 0 has added since.
TEST(H14WriteRace, AnAdditionMayNotMeetAClearedRow) {
    const auto kernel = [](bool join) {
        return [join](Core& core, Words data) {
            if (core.index() == 0) add_row(core, data, false);
            if (core.index() == 0) wait_for_rows(core);
            if (core.index() == 0) add_row(core, data, true);
            if (join) core.core_barrier();
            if (core.index() == 1) add_row(core, data, true);
        };
    };
    expect_caught(Hazard::write_race, "H14 rows", two_cores, kernel(false));
    expect_clean(two_cores, kernel(true));
}

TEST(H14WriteRace, AnAtomicMayNotMeetAResetCounter) {
    const auto kernel = [](bool join) {
        return [join](Core& core, Words data) {
            if (core.index() == 0) {
                core.store(data, 0);  // blame: H14 reset
                core.dcci(data);
                core.atomic_fetch_add(data, 1);
            }
            if (join) core.core_barrier();
            if (core.index() == 1) core.atomic_fetch_add(data, 1);
        };
    };
    expect_caught(Hazard::write_race, "H14 reset", two_cores, kernel(false));
    expect_clean(two_cores, kernel(true));
}

// The reader knows that one of two additions is complete; the other counts as well.
TEST(H8Unpublished, OneOfTwoAdditionsIsNotComplete) {
    const auto kernel = [](bool both) {
        return [both](Core& core, Words data) {
            add_row(core, data, true);
            const bool wait = both || core.index() == 1;
            core.set_flag<Pipe::copy_out, Pipe::scalar>(1);
            if (wait) core.wait_flag<Pipe::copy_out, Pipe::scalar>(1);
            core.core_barrier();
            if (core.index() == 1)
                static_cast<void>(core.load(reinterpret_cast<float*>(data)));  // blame: H8 one of two
            if (!wait) core.wait_flag<Pipe::copy_out, Pipe::scalar>(1);
        };
    };
    expect_caught(Hazard::unpublished, "H8 one of two", two_cores, kernel(false));
    expect_clean(two_cores, kernel(true));
}

// PE 0 puts to PE 1 and signals to PE 2, which signals to PE 1.
void relay(Core& core, Words data, const std::function<void()>& order) {
    const Words signal = data + 512;
    if (core.my_pe() == 0) {
        core.put(data, data + 256, row, 1);  // blame: H8 AFenceIsNoQuiet
        order();
        core.signal_set_on(signal, 1, 2);
    }
    if (core.my_pe() != 0) core.signal_wait_until(signal, Compare::equal, 1);
    if (core.my_pe() == 2) core.signal_set_on(signal, 1, 1);
    if (core.my_pe() == 1) core.data_copy(core.ub_alloc<std::uint64_t>(row), gm(data, row), row);
}

TEST(H8Unpublished, AFenceIsNoQuiet) {
    const test::Setup three{.pes = 3};
    expect_caught(Hazard::unpublished, "H8 AFenceIsNoQuiet", three,
                  [](Core& core, Words data) { relay(core, data, [&] { core.fence(); }); });
    expect_clean(three, [](Core& core, Words data) { relay(core, data, [&] { core.quiet(); }); });
}

// Signals to the target itself, also by another core of the PE, and by the target to others.
TEST(H8Unpublished, AFenceIsEnoughForThePeOfThePut) {
    const test::Setup setup{.pes = 3, .vector_cores = 2};
    expect_clean(setup, [](Core& core, Words data) {
        const Words signal = data + 512;
        const int me = core.my_pe();
        if (me == 0 && core.index() == 0) {
            core.put(data, data + 256, row, 1);
            core.fence();
        }
        if (me == 0) core.core_barrier();
        if (me == 0 && core.index() == 1) core.signal_set_on(signal, 1, 1);
        if (me == 0 || core.index() == 1) return;
        core.signal_wait_until(signal, Compare::equal, 1);
        if (me == 1) core.signal_set_on(signal, 1, 2);
        core.data_copy(core.ub_alloc<std::uint64_t>(row), gm(core.remote(data, 1), row), row);
    });
}

}  // namespace
}  // namespace npushmem::npu
