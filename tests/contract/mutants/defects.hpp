// SPDX-License-Identifier: BSD-3-Clause
// The defects that are seeded into a sound transport, and the cases of the contract that must catch them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace npushmem::contract {

enum class Defect {
    none,
    // completion
    early_put_token,
    early_get_token,
    early_fetch_token,
    lost_completions,
    reused_token,
    early_quiet,
    quiet_waits_for_other_queues,
    quiet_misses_gets,
    quiet_misses_atomics,
    quiet_misses_put_signals,
    posted_although_again,
    // order
    no_fence,
    every_second_fence_lost,
    fence_misses_second_queue,
    fence_misses_large_puts,
    fence_misses_atomics,
    fence_misses_fetching_atomics,
    fence_misses_put_signals,
    fence_misses_gets,
    fence_misses_earlier_atomics,
    fence_misses_earlier_put_signals,
    signal_before_data,
    signal_before_large_data,
    // data
    last_byte_of_odd_sizes_lost,
    put_displaced_at_page_border,
    get_displaced_at_page_border,
    large_puts_cut,
    writes_beyond_put,
    writes_beyond_get,
    source_changed,
    torn_words,
    stale_get,
    puts_lost,
    gets_lost,
    puts_to_self_lost,
    last_byte_refused,
    empty_put_refused,
    peers_swapped,
    regions_mixed,
    crash_in_large_put,
    // atomics and signals
    wide_32_bit_atomics,
    fetches_new_value,
    compare_ignored,
    and_or_swapped,
    xor_is_or,
    atomics_of_two_steps,
    signal_add_is_set,
    signal_set_is_add,
    // wrong arguments
    put_end_unchecked,
    put_overflow_unchecked,
    get_end_unchecked,
    atomic_end_unchecked,
    signal_end_unchecked,
    misaligned_atomic_accepted,
    unknown_atomic_accepted,
    width_3_accepted,
    misaligned_signal_accepted,
    unknown_signal_accepted,
    unknown_remote_accepted,
    unknown_queue_accepted,
    error_sticks,
    null_buffer_accepted,
    memory_of_another_pe_accepted,
    unknown_token_waits,
    // memory
    garbage_handle_accepted,
    truncated_handle_accepted,
    damaged_handle_accepted,
    refusal_without_message,
    second_import_has_same_number,
    released_memory_reachable,
    deregistered_memory_waits,
    import_under_other_number_breaks_peer,
    unknown_region_deregistered,
    unknown_remote_released,
    maps_wrong_memory,
    maps_without_capability,
    // queues
    destroyed_queue_writes,
    destroy_hangs,
    destroyed_twice,
    destroy_refuses_outstanding,
    destroy_loses_put_of_other_queue,
    second_queue_loses_puts,
    queue_number_given_twice,
    queue_table_of_16,
    // forget
    forget_leaves_operations,
    forget_leaves_a_token,
    forget_fails_for_ever,
    operations_after_forget_wait,
    second_forget_fails,
    forget_ends_other_peers,
    forget_of_unknown_pe_fails,
    forget_of_unknown_pe_ends_all,
    forget_of_unknown_pe_is_event,
    forget_of_unknown_pe_crashes,
    forget_is_always_event,
    forget_unmaps,
    // report_arrivals
    arrivals_not_reported,
    first_arrivals_only,
    // put_strided
    strided_at_source_distance,
    strided_last_block_lost,
    strided_overlap_ignored,
    early_strided_token,
    strided_puts_lost,
    fence_misses_strided_puts,
    strided_end_unchecked,
    // life and reach
    later_open_fails,
    later_open_crashes,
    open_leaks_descriptor,
    close_hangs,
    peer_table_of_8,
    reach_not_symmetrical,
    more_than_declared,
    atomic_without_operations,
    no_reason,
    no_reason_when_unreachable,
    reaches_nobody,
    maps_another_machine,
    maps_another_emulated_host,
    event_without_cause,
    progress_fails_when_idle,
    unknown_latency_is_minus_one,
    unknown_bandwidth_is_minus_one,
    bandwidth_in_gigabytes,
    cost_without_path,
    unknown_rail_is_minus_one,
    reserved_device_field_set,
    nameless_device,
};

// What becomes of the cases that catch a defect.
enum class Ending {
    fails,      // an expectation is not met, and no wait elapses
    times_out,  // an expectation is not met, because a wait elapses: the defect lets a call wait for ever
    crashes,
    hangs,  // a call does not return
};

// A case that catches a defect, and part of the failure by which it does: the same in each run, and in no line that
// names the test. Other failures of the case do not count.
struct CatchingCase {
    const char* name;
    const char* reason;
};

struct DefectRow {
    Defect defect;
    const char* name;
    const char* description;
    std::vector<CatchingCase> cases;
    Ending ending = Ending::fails;
};

std::span<const DefectRow> defects();
// Null if no defect has the name.
const DefectRow* find_defect(std::string_view name);

// A case that needs no defect, and why.
struct ExemptCase {
    const char* name;
    const char* reason;
};
std::span<const ExemptCase> exempt_cases();

}  // namespace npushmem::contract
