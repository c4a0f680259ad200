// SPDX-License-Identifier: BSD-3-Clause
// Barriers that not everybody calls, or not everybody in the same way: of cores (H23) and of PEs (H24, H25).
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

constexpr TeamView both_pes{0, 1, 2};

// ---- H23 ----------------------------------------------------------------------------------------------------------

// Three rows for four cores.
void idle_core_returns(Core& core, const Memory& m, bool wrong) {
    const bool idle = core.index() >= 3;
    if (idle && wrong) return;
    if (!idle) core.data_copy(core.ub_alloc<float>(16), gm(m.floats() + 16 * core.index(), 16), 16);
    core.core_barrier();  // WRONG: idle_core_returns
}

// Core 0 calls the barrier of its branch, and then the one of all cores.
void barrier_in_one_branch(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0) {
        core.store(m.data, 1);
        core.dcci(m.data);
        if (wrong) core.core_barrier();
    }
    core.core_barrier();  // WRONG: barrier_in_one_branch
}

// Three rows for two cores: core 0 has two of them.
void barrier_for_each_own_row(Core& core, const Memory& m, bool wrong) {
    for (int row = core.index(); row < 3 + (wrong ? 0 : core.index()); row += core.count()) {
        if (row < 3) use(core.load(m.data + 64 * row));
        core.core_barrier();  // WRONG: barrier_for_each_own_row
    }
}

void first_sub_core_only(Core& core, const Memory&, bool wrong) {
    if (core.sub_core_index() == 0 || !wrong) core.core_barrier();  // WRONG: first_sub_core_only
}

// A barrier of PEs contains core barriers: all cores must call it.
void one_core_calls_the_barrier(Core& core, const Memory& m, bool wrong) {
    if (core.index() == 0 || !wrong) sync_v3(core, both_pes, m.barriers);  // WRONG: one_core_calls_the_barrier
}

// ---- H24 ----------------------------------------------------------------------------------------------------------

void team_without_the_last_pe(Core& core, const Memory& m, bool wrong) {
    const int size = wrong && core.my_pe() == 0 ? core.n_pes() - 1 : core.n_pes();
    sync_v3(core, {0, 1, size}, m.barriers);  // WRONG: team_without_the_last_pe
}

void two_variants(Core& core, const Memory& m, bool wrong) {
    if (wrong && core.my_pe() == 0)
        sync_v1(core, both_pes, m.barriers);  // WRONG: two_variants
    else
        sync_v3(core, both_pes, m.barriers);  // WRONG: two_variants
}

// PE 1 has more rows, and launches more blocks.
int blocks_by_rows(int pe, bool wrong) { return wrong ? pe + 1 : 2; }

void launches_of_two_sizes(Core& core, const Memory& m, bool) {
    barrier_v3(core, both_pes, m.barriers);  // WRONG: launches_of_two_sizes
}

void two_radixes(Core& core, const Memory& m, bool wrong) {
    const int radix = wrong && core.my_pe() == 2 ? 3 : 2;
    sync_v2(core, {0, 1, 3}, m.barriers, radix);  // WRONG: two_radixes
}

// PE 0 counts every second PE, PE 2 all.
void two_strides(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1) return;
    const TeamView team = wrong && core.my_pe() == 2 ? TeamView{0, 1, 3} : TeamView{0, 2, 2};
    sync_v3(core, team, m.barriers);  // WRONG: two_strides
}

// ---- H25 ----------------------------------------------------------------------------------------------------------

// The state was used as scratch memory before.
void state_used_as_scratch(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 1 && wrong) {
        core.signal_set(&m.barriers->generation.word, 9);
        core.signal_set(&m.barriers->arrival.word, 9);
    }
    sync_v3(core, both_pes, m.barriers);  // WRONG: state_used_as_scratch
}

// PE 1 is in two teams, which must not share a state.
void one_state_for_two_teams(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() < 2)
        for (int i = 0; i < 3; ++i) sync_v3(core, {0, 1, 2}, m.barriers);
    if (core.my_pe() == 0) return;
    if (core.my_pe() == 1) core.signal_set_on(m.signal(0), 1, 2);
    if (core.my_pe() == 2) core.signal_wait_until(m.signal(0), Compare::equal, 1, 1);
    sync_v3(core, {1, 1, 2}, wrong ? m.barriers : m.barriers + 1);  // WRONG: one_state_for_two_teams
}

// PE 0 moves its arrival on by hand instead of calling the barriers.
void arrival_moved_by_hand(Core& core, const Memory& m, bool wrong) {
    if (core.my_pe() == 0) {
        if (wrong) core.signal_add(&m.barriers->arrival.word, 4);
        core.signal_set_on(m.signal(0), 1, 1);
    } else {
        core.signal_wait_until(m.signal(0), Compare::equal, 1, 0);
    }
    if (core.my_pe() == 0 && wrong) return;
    for (int i = 0; i < 4; ++i) sync_v3(core, both_pes, m.barriers);  // WRONG: arrival_moved_by_hand
}

}  // namespace

std::vector<Kernel> barrier_kernels() {
    return {
        {"idle_core_returns", Hazard::core_barrier, four_cores, idle_core_returns},
        {"barrier_in_one_branch", Hazard::core_barrier, two_cores, barrier_in_one_branch},
        {"barrier_for_each_own_row", Hazard::core_barrier, two_cores, barrier_for_each_own_row},
        {"first_sub_core_only", Hazard::core_barrier, two_cores, first_sub_core_only},
        {"one_core_calls_the_barrier", Hazard::core_barrier, two_pes_of_two_cores, one_core_calls_the_barrier},
        {"team_without_the_last_pe", Hazard::team_mismatch, two_pes, team_without_the_last_pe},
        {"two_variants", Hazard::team_mismatch, two_pes, two_variants, {}, nullptr, nullptr, "H17"},
        {"launches_of_two_sizes", Hazard::team_mismatch, two_pes, launches_of_two_sizes, {}, nullptr, blocks_by_rows},
        {"two_radixes", Hazard::team_mismatch, three_pes, two_radixes},
        {"two_strides", Hazard::team_mismatch, three_pes, two_strides, {}, nullptr, nullptr, "H17"},
        {"state_used_as_scratch", Hazard::generation, two_pes, state_used_as_scratch, {}, nullptr, nullptr, "H17"},
        {"one_state_for_two_teams",
         Hazard::generation,
         three_pes,
         one_state_for_two_teams,
         {},
         nullptr,
         nullptr,
         "H17 H24"},
        {"arrival_moved_by_hand", Hazard::generation, two_pes, arrival_moved_by_hand},
    };
}

}  // namespace npushmem::npu::corpus
