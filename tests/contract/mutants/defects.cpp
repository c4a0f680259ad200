// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/mutants/defects.hpp"

#include <algorithm>

namespace npushmem::contract {
namespace {

// clang-format off
const std::vector<DefectRow> rows = {
    {Defect::early_put_token, "early_put_token", "The token of a put is complete while its source is still read.", {{"a_source_can_be_reused_after_its_token", "the source was read after the token was complete"}}},
    {Defect::early_get_token, "early_get_token", "The token of a get is complete before the data is there.", {{"gets_arrive_whole", "bytes at"}}},
    {Defect::early_fetch_token, "early_fetch_token", "The token of a fetching atomic is complete before the value is there.", {{"every_operation_and_width", "fetched by operation"}}},
    {Defect::lost_completions, "lost_completions", "Every hundredth token never completes.", {{"gets_arrive_whole", "the wait for the token of a get"}}, Ending::times_out},
    {Defect::reused_token, "reused_token", "A token's number is given again while its operation is outstanding.", {{"tokens_complete_one_by_one", "was complete before its data came"}}},
    {Defect::early_quiet, "early_quiet", "quiet returns at once.", {{"quiet_means_delivered", "quiet has returned before the data came"}, {"puts_arrive_whole", "bytes at"}}},
    {Defect::quiet_waits_for_other_queues, "quiet_waits_for_other_queues", "quiet waits for operations of other queues too.", {{"two_queues_complete_by_themselves", "quiet of the second queue alone"}}, Ending::times_out},
    {Defect::quiet_misses_gets, "quiet_misses_gets", "quiet does not wait for gets.", {{"many_gets_all_arrive", "the word of get"}}},
    {Defect::quiet_misses_atomics, "quiet_misses_atomics", "quiet does not wait for atomics.", {{"additions_of_all_pes_add_up", "an addition is missing"}, {"quiet_covers_every_operation", "fetching atomic"}}},
    {Defect::quiet_misses_put_signals, "quiet_misses_put_signals", "quiet does not wait for put_signals.", {{"quiet_covers_every_operation", "signal of a put_signal"}}},
    {Defect::posted_although_again, "posted_although_again", "Every seventh post returns again although the operation was posted.", {{"additions_of_all_pes_add_up", "an addition was executed twice"}, {"fetched_tickets_are_unique", "a value was not fetched"}}},

    {Defect::no_fence, "no_fence", "fence does nothing.", {{"a_fence_orders_puts", "the flag came before its data"}, {"fences_form_a_chain", "is missing behind a later one"}}},
    {Defect::every_second_fence_lost, "every_second_fence_lost", "Every second fence does nothing.", {{"fences_form_a_chain", "is missing behind a later one"}, {"a_fence_orders_puts", "the flag came before its data"}}},
    {Defect::fence_misses_second_queue, "fence_misses_second_queue", "fence does nothing but on the first queue.", {{"a_second_queue_orders_and_completes_its_own", "the update came before what was fenced"}}},
    {Defect::fence_misses_large_puts, "fence_misses_large_puts", "Puts of more than 64 KiB are not ordered by fences.", {{"a_watcher_never_sees_a_flag_before_what_was_fenced", "came after the flag of round"}}},
    {Defect::fence_misses_atomics, "fence_misses_atomics", "Atomics are not ordered by fences.", {{"a_fence_orders_atomics_after_puts", "the flag came before its data"}}},
    {Defect::fence_misses_fetching_atomics, "fence_misses_fetching_atomics", "Fetching atomics are not ordered by fences.", {{"a_fence_orders_fetching_atomics_after_puts", "the flag came before its data"}}},
    {Defect::fence_misses_put_signals, "fence_misses_put_signals", "put_signals are not ordered by fences.", {{"a_fence_orders_put_signal_after_puts", "the flag came before its data"}}},
    {Defect::fence_misses_gets, "fence_misses_gets", "Gets may be executed before puts that a fence put before them.", {{"a_get_after_a_fence_sees_the_put", "the get does not see the put"}}},
    {Defect::fence_misses_earlier_atomics, "fence_misses_earlier_atomics", "A fence does not order atomics before what is posted later.", {{"a_fence_orders_every_update_before_puts", "the flag came before an atomic"}}},
    {Defect::fence_misses_earlier_put_signals, "fence_misses_earlier_put_signals", "A fence does not order put_signals before what is posted later.", {{"a_fence_orders_every_update_before_puts", "the flag came before a signal"}}},
    {Defect::signal_before_data, "signal_before_data", "The signal of a put_signal may arrive before its data.", {{"a_signal_comes_after_its_data", "the flag came before its data"}}},
    {Defect::signal_before_large_data, "signal_before_large_data", "The signal may arrive before data of more than 64 KiB.", {{"a_watcher_never_sees_a_signal_before_its_data", "came after the flag of round"}}},

    {Defect::last_byte_of_odd_sizes_lost, "last_byte_of_odd_sizes_lost", "Puts of odd sizes lose their last byte.", {{"puts_arrive_whole", "bytes at"}, {"sizes_around_every_limit_arrive", "put of 7 bytes"}, {"random_sequences_match_the_model", "region of PE"}}},
    {Defect::put_displaced_at_page_border, "put_displaced_at_page_border", "A put writes one byte too far behind a page border.", {{"puts_arrive_whole", "written beyond the target"}, {"transfers_across_a_page_border_are_whole", "before the border"}}},
    {Defect::get_displaced_at_page_border, "get_displaced_at_page_border", "A get reads one byte too far behind a page border.", {{"gets_arrive_whole", "bytes at"}, {"transfers_across_a_page_border_are_whole", "before the border"}}},
    {Defect::large_puts_cut, "large_puts_cut", "Puts end after 64 KiB.", {{"puts_arrive_whole", "65537 bytes at"}, {"a_transfer_of_a_gibibyte_arrives", "page 18"}}},
    {Defect::writes_beyond_put, "writes_beyond_put", "A put writes one byte beyond its end.", {{"puts_arrive_whole", "written beyond the target"}, {"puts_of_every_alignment_change_only_their_target", "of its slot is wrong"}}},
    {Defect::writes_beyond_get, "writes_beyond_get", "A get writes one byte beyond its end.", {{"gets_arrive_whole", "written beyond the destination"}, {"gets_of_every_alignment_change_only_their_destination", "of its slot is wrong"}}},
    {Defect::source_changed, "source_changed", "A put changes its source.", {{"puts_arrive_whole", "the put has changed its source"}}},
    {Defect::torn_words, "torn_words", "Data of 4 and 8 bytes arrives in two halves.", {{"aligned_puts_of_a_word_are_never_seen_torn", "the first torn value"}, {"words_of_put_signal_are_never_seen_torn", "data of put_signal"}, {"gets_of_a_changing_word_are_never_torn", "returned a value that the word never had"}}},
    {Defect::stale_get, "stale_get", "A get returns what an earlier get of the same place has read.", {{"a_get_after_a_fence_sees_the_put", "the get does not see the put"}}},
    {Defect::puts_lost, "puts_lost", "Every thousandth put is lost.", {{"many_puts_all_arrive", "the word of put"}, {"a_million_operations_arrive", "words without the value of their batch"}}},
    {Defect::gets_lost, "gets_lost", "Every seven hundredth get is lost.", {{"many_gets_all_arrive", "the word of get"}}},
    {Defect::puts_to_self_lost, "puts_to_self_lost", "Puts of a PE to itself are ignored.", {{"puts_arrive_whole", "1 bytes at 0"}}},
    {Defect::last_byte_refused, "last_byte_refused", "The last byte of a region cannot be written.", {{"the_last_byte_can_be_reached", "a put of the last byte"}}},
    {Defect::empty_put_refused, "empty_put_refused", "A put of no bytes is an error.", {{"puts_arrive_whole", "a put of 0 bytes"}, {"the_last_byte_can_be_reached", "nothing, at the end"}}},
    {Defect::peers_swapped, "peers_swapped", "Puts to PE 1 go to PE 2, and vice versa.", {{"puts_arrive_whole", "1 bytes at 0"}, {"two_to_sixteen_pes_reach_each_other", "put from 0 to 1 of"}}},
    {Defect::regions_mixed, "regions_mixed", "The import of a peer's second region gives access to the first.", {{"several_regions_do_not_mix", "the second region"}}},
    {Defect::crash_in_large_put, "crash_in_large_put", "A put of more than 64 KiB crashes.", {{"puts_arrive_whole", "the defect crashes in a put"}}, Ending::crashes},

    {Defect::wide_32_bit_atomics, "wide_32_bit_atomics", "Atomics on 32 bits write 64.", {{"every_operation_and_width", "a neighbouring word changed"}}},
    {Defect::fetches_new_value, "fetches_new_value", "Fetching atomics return the new value.", {{"every_operation_and_width", "fetched by operation"}}},
    {Defect::compare_ignored, "compare_ignored", "COMPARE_SWAP swaps without comparison.", {{"every_operation_and_width", "operation 7, "}}},
    {Defect::and_or_swapped, "and_or_swapped", "AND executes OR, and vice versa.", {{"every_operation_and_width", "operation 3, "}, {"random_sequences_match_the_model", "region of PE"}}},
    {Defect::xor_is_or, "xor_is_or", "FETCH_XOR executes FETCH_OR.", {{"every_operation_and_width", "operation 11, "}}},
    {Defect::atomics_of_two_steps, "atomics_of_two_steps", "Additions read the word and write the sum later.", {{"additions_of_all_pes_add_up", "an addition is missing"}, {"fetched_tickets_are_unique", "a value was fetched twice"}, {"threads_do_not_lose_additions", "an addition is missing"}}},
    {Defect::signal_add_is_set, "signal_add_is_set", "The signal operation ADD sets the word.", {{"signals_are_set_and_added", "after two additions"}}},
    {Defect::signal_set_is_add, "signal_set_is_add", "The signal operation SET adds to the word.", {{"signals_are_set_and_added", "after it was set"}}},

    {Defect::put_end_unchecked, "put_end_unchecked", "A put beyond the end of a region returns ok.", {{"wrong_puts", "a put beyond the end was accepted"}, {"sizes_beyond_the_region_are_refused", "bytes at offset 0 was accepted"}}},
    {Defect::put_overflow_unchecked, "put_overflow_unchecked", "A put whose end overflows returns ok.", {{"wrong_puts", "a put whose end overflows was accepted"}, {"offsets_that_wrap_around_are_refused", "a put at offset"}}},
    {Defect::get_end_unchecked, "get_end_unchecked", "A get beyond the end of a region returns ok.", {{"wrong_gets", "a get beyond the end was accepted"}}},
    {Defect::atomic_end_unchecked, "atomic_end_unchecked", "An atomic beyond the end of a region returns ok.", {{"wrong_atomics", "an atomic beyond the end was accepted"}}},
    {Defect::signal_end_unchecked, "signal_end_unchecked", "A signal beyond the end of a region returns ok.", {{"wrong_signals", "a signal beyond the end was accepted"}}},
    {Defect::misaligned_atomic_accepted, "misaligned_atomic_accepted", "A misaligned atomic returns ok.", {{"wrong_atomics", "a misaligned atomic was accepted"}}},
    {Defect::unknown_atomic_accepted, "unknown_atomic_accepted", "An unknown atomic operation returns ok.", {{"wrong_atomics", "an unknown atomic operation was accepted"}}},
    {Defect::width_3_accepted, "width_3_accepted", "An atomic of three bytes returns ok.", {{"wrong_atomics", "an atomic of 3 bytes was accepted"}}},
    {Defect::misaligned_signal_accepted, "misaligned_signal_accepted", "A misaligned signal returns ok.", {{"wrong_signals", "a misaligned signal was accepted"}}},
    {Defect::unknown_signal_accepted, "unknown_signal_accepted", "An unknown signal operation returns ok.", {{"wrong_signals", "an unknown signal operation was accepted"}}},
    {Defect::unknown_remote_accepted, "unknown_remote_accepted", "A put to memory that was not imported returns ok.", {{"wrong_puts", "a put to memory that was not imported was accepted"}, {"unknown_memory_is_refused", "a put on memory number 0 was accepted"}}},
    {Defect::unknown_queue_accepted, "unknown_queue_accepted", "Calls on queues that do not exist return ok.", {{"wrong_queues", "fence of queue"}, {"unknown_queues_are_refused", "a put on queue"}, {"a_destroyed_queue_is_refused", "a put on a destroyed queue"}}},
    {Defect::error_sticks, "error_sticks", "After a refused put, quiet returns its error for ever.", {{"wrong_puts", "after a put beyond the end"}}},
    {Defect::null_buffer_accepted, "null_buffer_accepted", "A put from a null buffer returns ok.", {{"null_buffers_are_refused_unless_empty", "a put with a null buffer was accepted"}}},
    {Defect::memory_of_another_pe_accepted, "memory_of_another_pe_accepted", "The PE of a put is ignored; the imported memory decides.", {{"memory_of_another_pe_is_refused", "with memory of PE 0 was accepted"}}},
    {Defect::unknown_token_waits, "unknown_token_waits", "A token that was never given never completes.", {{"a_wait_for_an_unknown_token_ends", "token 1"}}, Ending::times_out},

    {Defect::garbage_handle_accepted, "garbage_handle_accepted", "Bytes that are no handle are imported.", {{"handles_that_nobody_made_are_refused", "bytes of garbage were taken for a handle"}}},
    {Defect::truncated_handle_accepted, "truncated_handle_accepted", "A handle without its last byte is imported.", {{"truncated_and_damaged_handles_are_refused", "without its last byte"}, {"handles_of_a_wrong_length_are_refused", "a handle cut to"}}},
    {Defect::damaged_handle_accepted, "damaged_handle_accepted", "A handle with a changed byte is imported.", {{"truncated_and_damaged_handles_are_refused", "with another first byte"}, {"handles_with_a_changed_byte_do_no_harm", "a handle with byte 0 changed was accepted"}}},
    {Defect::refusal_without_message, "refusal_without_message", "A handle is refused without a message.", {{"handles_that_nobody_made_are_refused", "refused without a message"}}},
    {Defect::second_import_has_same_number, "second_import_has_same_number", "A handle that is imported twice gets one number.", {{"importing_can_be_repeated", "the first import would be released with the second"}}},
    {Defect::released_memory_reachable, "released_memory_reachable", "Memory can be written after its import was released.", {{"released_memory_is_refused", "a put on released memory was accepted"}}},
    {Defect::deregistered_memory_waits, "deregistered_memory_waits", "A put to memory that its owner has deregistered returns again for ever.", {{"operations_on_deregistered_memory_end", "a put on deregistered memory"}}, Ending::times_out},
    {Defect::import_under_other_number_breaks_peer, "import_under_other_number_breaks_peer", "After the import of a handle under another PE's number, its own PE can no longer be written.", {{"a_handle_under_another_number_does_no_harm", "a put afterwards"}}},
    {Defect::unknown_region_deregistered, "unknown_region_deregistered", "deregister_memory accepts any number.", {{"numbers_that_stand_for_nothing_are_refused", "deregistered region 0"}}},
    {Defect::unknown_remote_released, "unknown_remote_released", "release_memory accepts any number.", {{"numbers_that_stand_for_nothing_are_refused", "released import 0"}}},
    {Defect::maps_wrong_memory, "maps_wrong_memory", "map returns the caller's own memory instead of the peer's.", {{"a_mapping_shows_the_peers_memory", "what the peer has stored"}}},
    {Defect::maps_without_capability, "maps_without_capability", "map returns an address for a peer that cannot be mapped.", {{"without_the_capability_nothing_is_mapped", "mapped without the capability"}}},

    {Defect::destroyed_queue_writes, "destroyed_queue_writes", "The gets of a destroyed queue still write.", {{"a_queue_can_go_with_operations_outstanding", "a destroyed queue still writes"}}},
    {Defect::destroy_hangs, "destroy_hangs", "destroy_queue does not return while operations are outstanding.", {{"a_queue_can_go_with_operations_outstanding", "the defect hangs in destroy_queue"}}, Ending::hangs},
    {Defect::destroyed_twice, "destroyed_twice", "A queue can be destroyed twice.", {{"many_queues_come_and_go", "destroyed twice"}}},
    {Defect::destroy_refuses_outstanding, "destroy_refuses_outstanding", "destroy_queue fails while operations are outstanding.", {{"queues_close_beside_others_that_open", "with a put outstanding"}, {"a_queue_can_go_with_operations_outstanding", "with gets outstanding"}}},
    {Defect::destroy_loses_put_of_other_queue, "destroy_loses_put_of_other_queue", "After destroy_queue, the next put of another queue is lost.", {{"queues_come_and_go_beside_transfers", "the put of queue"}, {"threads_create_and_destroy_queues_under_load", "put 0 of queue"}}},
    {Defect::second_queue_loses_puts, "second_queue_loses_puts", "Puts of all queues but the first are lost.", {{"threads_use_a_queue_each", "put 1 of thread 0"}, {"two_queues_complete_by_themselves", "the put of the second queue"}}},
    {Defect::queue_number_given_twice, "queue_number_given_twice", "Two queues get one number.", {{"many_queues_come_and_go", "two queues have one number"}}},
    {Defect::queue_table_of_16, "queue_table_of_16", "There is room for 16 queues.", {{"many_queues_come_and_go", "no room for a queue"}, {"many_queues_to_one_peer", "no room for a queue"}}},

    {Defect::forget_leaves_operations, "forget_leaves_operations", "After forget, quiet returns again for ever if operations were outstanding.", {{"forget_ends_outstanding_operations", "a quiet"}}, Ending::times_out},
    {Defect::forget_leaves_a_token, "forget_leaves_a_token", "After forget, the latest token never completes.", {{"forget_ends_outstanding_operations", "a token"}}, Ending::times_out},
    {Defect::forget_fails_for_ever, "forget_fails_for_ever", "After forget, each quiet returns the failure.", {{"forget_ends_outstanding_operations", "a failure is reported once"}, {"operations_after_forget_end", "a failure is reported once"}}},
    {Defect::operations_after_forget_wait, "operations_after_forget_wait", "A put to a forgotten PE returns again for ever.", {{"operations_after_forget_end", "a put"}}, Ending::times_out},
    {Defect::second_forget_fails, "second_forget_fails", "The second forget of a PE is refused.", {{"operations_after_forget_end", "repeatedly"}}},
    {Defect::forget_ends_other_peers, "forget_ends_other_peers", "forget of one PE forgets all.", {{"forget_leaves_other_peers_alone", "PE 0 to 2"}}},
    {Defect::forget_of_unknown_pe_fails, "forget_of_unknown_pe_fails", "forget of a PE that does not exist returns another code than argument.", {{"forget_without_a_peer_has_no_effect", "forget of PE -1: state"}}},
    {Defect::forget_of_unknown_pe_ends_all, "forget_of_unknown_pe_ends_all", "forget of a PE that does not exist forgets all.", {{"forget_without_a_peer_has_no_effect", "a put to another PE"}}},
    {Defect::forget_of_unknown_pe_is_event, "forget_of_unknown_pe_is_event", "forget of a PE that does not exist is reported as an event.", {{"forget_without_a_peer_has_no_effect", "the defect: nothing has happened"}}},
    {Defect::forget_of_unknown_pe_crashes, "forget_of_unknown_pe_crashes", "forget of a PE that does not exist crashes.", {{"forget_without_a_peer_has_no_effect", "the defect crashes in forget"}}, Ending::crashes},
    {Defect::forget_is_always_event, "forget_is_always_event", "forget is reported as an event although no operation was outstanding.", {{"forget_is_no_event_when_nothing_is_outstanding", "the defect: nothing has happened"}, {"forget_without_a_peer_has_no_effect", "the defect: nothing has happened"}}},
    {Defect::forget_unmaps, "forget_unmaps", "forget unmaps the memory of the PE.", {{"forget_keeps_mapped_memory", "the defect has unmapped memory"}}, Ending::crashes},

    {Defect::arrivals_not_reported, "arrivals_not_reported", "report_arrivals succeeds, and nothing is reported.", {{"arrivals_are_reported", "no report of put 0"}}, Ending::times_out},
    {Defect::first_arrivals_only, "first_arrivals_only", "Only the first arrival is reported.", {{"arrivals_are_reported", "no report of"}}, Ending::times_out},

    {Defect::later_open_fails, "later_open_fails", "The eleventh open of a process fails.", {{"opens_and_closes_repeatedly", "the defect: this process has opened it too often"}}},
    {Defect::later_open_crashes, "later_open_crashes", "The eleventh open of a process crashes.", {{"opens_and_closes_repeatedly", "the defect crashes in open"}}, Ending::crashes},
    {Defect::open_leaks_descriptor, "open_leaks_descriptor", "Each open leaves a file descriptor open.", {{"closing_leaves_no_descriptor", "each life of two PEs leaves descriptors"}}},
    {Defect::close_hangs, "close_hangs", "close does not return.", {{"closes_with_everything_in_use", "the defect hangs in close"}}, Ending::hangs},
    {Defect::peer_table_of_8, "peer_table_of_8", "PEs from number 8 cannot be reached.", {{"more_pes_are_reached_as_few_are", "the table is full"}}},
    {Defect::reach_not_symmetrical, "reach_not_symmetrical", "A PE offers gets only to PEs of larger numbers.", {{"promises_are_consistent", "reach is not symmetrical"}}},
    {Defect::more_than_declared, "more_than_declared", "A peer offers a capability that the plugin does not declare.", {{"promises_are_consistent", "more than is declared"}}},
    {Defect::atomic_without_operations, "atomic_without_operations", "A peer offers atomics, but no operation.", {{"promises_are_consistent", "atomics without an operation"}}},
    {Defect::no_reason, "no_reason", "reach gives no reason.", {{"promises_are_consistent", "no reason given"}, {"malformed_addresses_are_unreachable_or_refused", "no reason for an address"}, {"peers_with_unknown_numbers_do_no_harm", "PE -1"}}},
    {Defect::no_reason_when_unreachable, "no_reason_when_unreachable", "reach gives no reason for an unreachable peer.", {{"another_machine_is_not_mapped", "no reason given"}}},
    {Defect::reaches_nobody, "reaches_nobody", "No PE can be reached.", {{"reaches_someone", "no PE can be reached, not even by itself"}}},
    {Defect::maps_another_machine, "maps_another_machine", "reach ignores the machine.", {{"another_machine_is_not_mapped", "memory of another machine"}}},
    {Defect::maps_another_emulated_host, "maps_another_emulated_host", "reach ignores the emulated host.", {{"another_emulated_host_is_not_mapped", "memory of another emulated host"}}},
    {Defect::event_without_cause, "event_without_cause", "poll_event reports an event that has no cause.", {{"waiting_calls_do_not_block_when_idle", "the defect: nothing has happened"}}},
    {Defect::progress_fails_when_idle, "progress_fails_when_idle", "progress fails when there is nothing to do.", {{"waiting_calls_do_not_block_when_idle", "progress has failed"}}},
    {Defect::unknown_latency_is_minus_one, "unknown_latency_is_minus_one", "reach gives -1 for an unknown latency.", {{"costs_are_plausible", "latency, PE 0 to 0"}}},
    {Defect::unknown_bandwidth_is_minus_one, "unknown_bandwidth_is_minus_one", "reach gives -1 for an unknown bandwidth.", {{"costs_are_plausible", "bandwidth, PE 0 to 0"}}},
    {Defect::bandwidth_in_gigabytes, "bandwidth_in_gigabytes", "reach gives the bandwidth in gigabytes per second.", {{"costs_are_plausible", "too low a bandwidth"}}},
    {Defect::cost_without_path, "cost_without_path", "reach gives the cost of the path to an unreachable PE.", {{"costs_are_plausible", "there is no path"}}},
    {Defect::unknown_rail_is_minus_one, "unknown_rail_is_minus_one", "A device has the number -1 for an unknown rail.", {{"rails_are_plausible", "rail of defect0"}}},
    {Defect::reserved_device_field_set, "reserved_device_field_set", "A reserved field of a device is not 0.", {{"rails_are_plausible", "reserved field of defect0"}}},
    {Defect::nameless_device, "nameless_device", "A device has no name.", {{"devices_are_named", "no name"}}},

    {Defect::strided_at_source_distance, "strided_at_source_distance", "The blocks of a put_strided are as distant at the target as at the source.", {{"strided_puts_arrive_whole", "before them on"}}},
    {Defect::strided_last_block_lost, "strided_last_block_lost", "The last of several blocks is not put.", {{"strided_puts_arrive_whole", "before them on"}}},
    {Defect::strided_overlap_ignored, "strided_overlap_ignored", "Blocks whose sources overlap are all copies of the first.", {{"strided_sources_may_overlap", "before them on"}}},
    {Defect::early_strided_token, "early_strided_token", "The token of a put_strided is complete while the later blocks are still read.", {{"a_strided_source_can_be_reused_after_its_token", "the source was read after the token was complete"}}},
    {Defect::strided_puts_lost, "strided_puts_lost", "Every hundredth strided put is lost.", {{"many_strided_puts_all_arrive", "strided put "}}},
    {Defect::fence_misses_strided_puts, "fence_misses_strided_puts", "Strided puts are not ordered by fences.", {{"a_fence_orders_strided_puts", "the flag came before block"}, {"a_fence_orders_puts_before_strided_puts", "the flag came before word"}}},
    {Defect::strided_end_unchecked, "strided_end_unchecked", "A put_strided with a block beyond the end of a region returns ok.", {{"wrong_strided_puts", "was accepted"}}},
};
// clang-format on

constexpr const char* pes_are_processes =
    "its PEs are processes, and the reference, into which the defects are seeded, reaches PEs of one process only";

const std::vector<ExemptCase> exempt = {
    {"processes_reach_each_other", pes_are_processes},  {"killed_during_puts", pes_are_processes},
    {"killed_during_gets", pes_are_processes},          {"killed_during_atomics", pes_are_processes},
    {"killed_during_put_signals", pes_are_processes},   {"killed_during_fences_and_quiets", pes_are_processes},
    {"killed_during_registrations", pes_are_processes}, {"killed_while_idle", pes_are_processes},
    {"killed_before_reach", pes_are_processes},         {"killed_before_connect", pes_are_processes},
    {"killed_before_import", pes_are_processes},        {"killed_before_the_first_operation", pes_are_processes},
    {"each_death_is_reported_once", pes_are_processes}, {"a_normal_end_disturbs_nobody", pes_are_processes},
    {"a_stopped_pe_is_not_dead", pes_are_processes},    {"two_processes_all_to_all", pes_are_processes},
    {"four_processes_all_to_all", pes_are_processes},   {"eight_processes_all_to_all", pes_are_processes},
    {"put_to_an_idle_pe", pes_are_processes},           {"get_from_an_idle_pe", pes_are_processes},
    {"atomic_on_an_idle_pe", pes_are_processes},        {"put_signal_to_an_idle_pe", pes_are_processes},
    {"altered_addresses", pes_are_processes},           {"killed_during_strided_puts", pes_are_processes},
};

}  // namespace

std::span<const DefectRow> defects() { return rows; }

const DefectRow* find_defect(std::string_view name) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
    return found != rows.end() ? &*found : nullptr;
}

std::span<const ExemptCase> exempt_cases() { return exempt; }

}  // namespace npushmem::contract
