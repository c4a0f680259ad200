// SPDX-License-Identifier: BSD-3-Clause
// Wrong addresses (H10, H11), and symmetric allocations that differ between PEs (H27).
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

// ---- H10 ----------------------------------------------------------------------------------------------------------

void loop_runs_one_word_too_far(Core& core, const Memory& m, bool wrong) {
    Word sum = 0;
    for (std::size_t i = 0; wrong ? i <= data_words : i < data_words; i += 64)
        sum += core.load(m.data + i);  // WRONG: loop_runs_one_word_too_far
    use(sum);
}

// The last row is shorter than the others.
void last_row_is_shorter(Core& core, const Memory& m, bool wrong) {
    const std::size_t begin = data_words - 4;
    const std::size_t count = wrong ? 8 : 4;
    core.data_copy(core.ub_alloc<Word>(8), gm(m.data + begin, count), count);  // WRONG: last_row_is_shorter
}

void remote_copy_of_a_local(Core& core, const Memory& m, bool wrong) {
    Word local = 0;
    Word* const counter = wrong ? &local : m.data;
    core.store(core.remote(counter, 1 - core.my_pe()), 1);  // WRONG: remote_copy_of_a_local
}

void signals_a_local(Core& core, const Memory& m, bool wrong) {
    Word local = 0;
    core.signal_set_on(wrong ? &local : m.signal(0), 1, 1 - core.my_pe());  // WRONG: signals_a_local
}

Word* freed_table_of(Host& host, bool wrong) {
    Word* const table = host.allocate(64);
    if (wrong) host.release(table);
    return table;
}

void reads_a_freed_table(Core& core, const Memory& m, bool) {
    use(core.load(m.prepared));  // WRONG: reads_a_freed_table
}

// There is no slot before the first one.
void previous_slot_of_the_first(Core& core, const Memory& m, bool wrong) {
    const std::size_t slot = core.load(m.data);
    Word* const previous = wrong ? m.signals + slot - 1 : m.signals + (slot + 7) % 8;
    core.store(previous, 1);  // WRONG: previous_slot_of_the_first
}

void puts_beyond_the_end(Core& core, const Memory& m, bool wrong) {
    const std::size_t count = wrong ? 16 : 8;
    core.put(m.data + data_words - 8, m.data, count, 1 - core.my_pe());  // WRONG: puts_beyond_the_end
}

// ---- H11 ----------------------------------------------------------------------------------------------------------

// A kind of two bytes precedes the length.
void length_in_a_packed_header(Core& core, const Memory& m, bool wrong) {
    auto* const header = reinterpret_cast<std::byte*>(m.data);
    use(core.load(reinterpret_cast<std::uint32_t*>(header + (wrong ? 2 : 4))));  // WRONG: length_in_a_packed_header
}

void double_behind_a_float(Core& core, const Memory& m, bool wrong) {
    auto* const sum = reinterpret_cast<double*>(m.floats() + (wrong ? 1 : 2));
    core.store(sum, 0.5);  // WRONG: double_behind_a_float
}

void signal_behind_a_half_word(Core& core, const Memory& m, bool wrong) {
    auto* const state = reinterpret_cast<std::uint32_t*>(m.signal(0));
    core.signal_set(reinterpret_cast<Word*>(state + (wrong ? 1 : 2)), 1);  // WRONG: signal_behind_a_half_word
}

void packed_counter(Core& core, const Memory& m, bool wrong) {
    auto* const bytes = reinterpret_cast<std::byte*>(m.data);
    core.atomic_fetch_add(reinterpret_cast<std::uint32_t*>(bytes + (wrong ? 6 : 8)), 1);  // WRONG: packed_counter
}

// ---- H27 ----------------------------------------------------------------------------------------------------------

// Each PE allocates for the tokens that it has.
Word* room_for_own_tokens(Host& host, bool wrong) {
    const std::size_t tokens = wrong ? 8 * static_cast<std::size_t>(host.my_pe() + 1) : 16;
    return host.allocate(tokens);  // WRONG: room_for_own_tokens
}

Word* table_on_the_root_only(Host& host, bool wrong) {
    Word* const shared = host.allocate(8);
    if (host.my_pe() == 0 || !wrong) host.allocate(64);  // WRONG: table_on_the_root_only
    return shared;
}

Word* buffers_in_another_order(Host& host, bool wrong) {
    const bool small_first = host.my_pe() == 0 || !wrong;
    host.allocate(small_first ? 8 : 64);  // WRONG: buffers_in_another_order
    return host.allocate(small_first ? 64 : 8);
}

void uses_its_own_memory(Core& core, const Memory& m, bool) { core.store(m.data, 1); }

}  // namespace

std::vector<Kernel> address_kernels() {
    return {
        {"loop_runs_one_word_too_far", Hazard::bad_address, one_core, loop_runs_one_word_too_far},
        {"last_row_is_shorter", Hazard::bad_address, one_core, last_row_is_shorter},
        {"remote_copy_of_a_local", Hazard::bad_address, two_pes, remote_copy_of_a_local},
        {"signals_a_local", Hazard::bad_address, two_pes, signals_a_local},
        {"reads_a_freed_table", Hazard::bad_address, two_pes, reads_a_freed_table, {}, freed_table_of},
        {"previous_slot_of_the_first", Hazard::bad_address, one_core, previous_slot_of_the_first},
        {"puts_beyond_the_end", Hazard::bad_address, two_pes, puts_beyond_the_end},
        {"length_in_a_packed_header", Hazard::misaligned_scalar, one_core, length_in_a_packed_header},
        {"double_behind_a_float", Hazard::misaligned_scalar, one_core, double_behind_a_float},
        {"signal_behind_a_half_word", Hazard::misaligned_scalar, one_core, signal_behind_a_half_word},
        {"packed_counter", Hazard::misaligned_scalar, one_core, packed_counter},
        {"room_for_own_tokens", Hazard::asymmetric_heap, two_pes, uses_its_own_memory, "jobs", room_for_own_tokens},
        {"table_on_the_root_only", Hazard::asymmetric_heap, two_pes, uses_its_own_memory, "jobs",
         table_on_the_root_only},
        {"buffers_in_another_order", Hazard::asymmetric_heap, two_pes, uses_its_own_memory, "jobs",
         buffers_in_another_order},
    };
}

}  // namespace npushmem::npu::corpus
