// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/case_rules.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace npushmem::contract {
namespace {

constexpr std::pair<std::string_view, std::string_view> transport_rules[] = {
    {"opens_and_closes_repeatedly", "open: instances can be opened and closed any number of times in one process."},
    {"closes_with_everything_in_use",
     "Life of an instance: close may follow any call, also while queues and memory are in use."},
    {"promises_are_consistent",
     "reach: both PEs return the same capabilities with a reason, no more than the plugin declares, and atomic_32 or "
     "atomic_64 only with NPUSHMEM_CAP_ATOMIC."},
    {"reaches_someone", "reach: some PE, at least the own one, is reachable."},
    {"another_machine_is_not_mapped",
     "npushmem_host_id: memory of another machine is not mapped, and is reached only with NPUSHMEM_CAP_REMOTE."},
    {"another_emulated_host_is_not_mapped", "npushmem_host_id: memory of another emulated host is not mapped."},
    {"waiting_calls_do_not_block_when_idle",
     "progress, poll_event and quiet return at once when nothing is outstanding."},
    {"devices_are_named", "devices: each device has a name."},
    {"a_mapping_shows_the_peers_memory",
     "NPUSHMEM_CAP_MAP: loads and stores through the address of map access the peer's memory."},
    {"without_the_capability_nothing_is_mapped", "map fails for a peer without NPUSHMEM_CAP_MAP."},
    {"several_regions_do_not_mix", "register_memory: several regions of one PE are independent of each other."},
    {"importing_can_be_repeated", "import_memory returns a new number at each call, also for equal handles."},
    {"handles_that_nobody_made_are_refused", "Refusals: a handle that no transport made is refused with a message."},
    {"truncated_and_damaged_handles_are_refused",
     "Refusals: a truncated handle, and one whose first byte has changed, is refused with a message."},
    {"numbers_that_stand_for_nothing_are_refused",
     "Refusals: a number of a region or remote memory that was not given out, or was released, is refused."},
    {"puts_arrive_whole", "put: all bytes are at the target after quiet, and no byte around them has changed."},
    {"gets_arrive_whole",
     "get: all bytes are at the destination when it is complete, and no byte around them has changed."},
    {"the_last_byte_can_be_reached", "put: the range of a region includes its last byte."},
    {"a_source_can_be_reused_after_its_token",
     "Completion: the source of a put may be changed when its token is complete."},
    {"many_puts_all_arrive",
     "put: more operations than a queue has room for all arrive; NPUSHMEM_AGAIN means that nothing was posted."},
    {"many_gets_all_arrive",
     "get: more operations than a queue has room for all complete; NPUSHMEM_AGAIN means that nothing was posted."},
    {"strided_puts_arrive_whole", "put_strided: the bytes of every block arrive, and no byte between blocks changes."},
    {"strided_sources_may_overlap", "put_strided: any local stride is valid, also 0 and one smaller than a block."},
    {"a_strided_source_can_be_reused_after_its_token",
     "Completion: the source of a put_strided may be changed when its token is complete."},
    {"many_strided_puts_all_arrive",
     "put_strided: more operations than a queue has room for all arrive; NPUSHMEM_AGAIN means that nothing was "
     "posted."},
    {"a_fence_orders_strided_puts", "Ordering: fence orders strided puts before later puts to the same peer."},
    {"a_fence_orders_puts_before_strided_puts",
     "Ordering: fence orders puts before later strided puts to the same peer."},
    {"wrong_strided_puts",
     "Refusals: a put_strided with a wrong range, size or number fails, has no effect, and leaves the queue usable."},
    {"every_operation_and_width",
     "npushmem_reach.atomic_*: each declared operation and width changes the object and returns its old value as "
     "defined."},
    {"additions_of_all_pes_add_up", "atomic: concurrent operations of several PEs on one object are atomic."},
    {"fetched_tickets_are_unique", "atomic: concurrent fetching additions return different values."},
    {"threads_do_not_lose_additions", "atomic: concurrent operations of several threads on one object are atomic."},
    {"a_fence_orders_puts", "Ordering: fence orders puts before later puts to the same peer."},
    {"a_fence_orders_atomics_after_puts", "Ordering: fence orders puts before later atomics on the same peer."},
    {"a_fence_orders_fetching_atomics_after_puts",
     "Ordering: fence orders puts before later fetching atomics on the same peer."},
    {"a_signal_comes_after_its_data", "Ordering: put_signal delivers its data before its signal."},
    {"a_fence_orders_put_signal_after_puts", "Ordering: fence orders puts before a later put_signal to the same peer."},
    {"a_get_after_a_fence_sees_the_put", "Ordering: fence orders puts before later gets from the same peer."},
    {"fences_form_a_chain",
     "Ordering: fence orders all earlier updates before all later operations, also over several fences."},
    {"a_watcher_never_sees_a_signal_before_its_data",
     "Ordering: a thread of the target that sees the signal of put_signal sees its data."},
    {"a_watcher_never_sees_a_flag_before_what_was_fenced",
     "Ordering: a thread of the target that sees an update after a fence sees the updates before it."},
    {"quiet_means_delivered",
     "Completion: quiet returns NPUSHMEM_OK when everything posted to the queue is delivered at its target."},
    {"two_queues_complete_by_themselves",
     "Queues are independent: quiet of one does not wait for operations of another."},
    {"a_queue_can_go_with_operations_outstanding",
     "destroy_queue: no local memory is accessed after it has returned, and other queues continue."},
    {"many_queues_come_and_go", "create_queue and destroy_queue can be repeated any number of times."},
    {"threads_use_a_queue_each",
     "Threads: data-path functions of different queues may run in different threads at once."},
    {"many_queues_to_one_peer",
     "Queues are independent: each completes its own operations to a common peer, in any order."},
    {"a_second_queue_orders_and_completes_its_own",
     "Queues are independent: fence and quiet of one cover its own operations while another queue has operations in "
     "flight."},
    {"queues_come_and_go_beside_transfers",
     "Threads: a thread may create and destroy queues while another is on the data path of its own queue."},
    {"queues_close_beside_others_that_open",
     "Threads: destroy_queue may run beside set-up functions in another thread."},
    {"wrong_puts", "Refusals: a put with a wrong range or number fails, has no effect, and leaves the queue usable."},
    {"wrong_gets", "Refusals: a get with a wrong range or number fails, has no effect, and leaves the queue usable."},
    {"wrong_atomics",
     "Refusals: an atomic with a wrong operation, width, alignment or range fails, has no effect, and leaves the queue "
     "usable."},
    {"wrong_signals",
     "Refusals: a put_signal with a wrong operation, alignment or range fails, has no effect, and leaves the queue "
     "usable."},
    {"wrong_queues", "Refusals: a number of a queue that was not given out is refused by every function."},
    {"a_million_operations_arrive", "put and atomic: a long stream of operations arrives completely."},
    {"a_transfer_of_a_gibibyte_arrives", "put and get: one operation of 1 GiB arrives completely."},
    {"sizes_around_every_limit_arrive",
     "put and get: operations of every size around powers of two arrive completely."},
    {"two_to_sixteen_pes_reach_each_other", "put, get and atomic work among all pairs of up to 16 PEs."},
    {"threads_create_and_destroy_queues_under_load",
     "Threads: queues are created and destroyed while several threads use theirs."},
    {"puts_of_every_alignment_change_only_their_target",
     "put: source and target may have any alignment, and no byte around the target changes."},
    {"gets_of_every_alignment_change_only_their_destination",
     "get: source and destination may have any alignment, and no byte around the destination changes."},
    {"transfers_across_a_page_border_are_whole",
     "put and get: transfers that cross a border of pages arrive completely."},
    {"aligned_puts_of_a_word_are_never_seen_torn",
     "Torn words: an aligned put of 4 or 8 bytes is one store at the target."},
    {"words_of_put_signal_are_never_seen_torn",
     "Torn words: aligned data of 4 or 8 bytes and the signal of put_signal are one store each at the target."},
    {"gets_of_a_changing_word_are_never_torn", "Torn words: an aligned get of 4 or 8 bytes is one load at the target."},
    {"unknown_queues_are_refused", "Refusals: a number of a queue that was not given out is refused."},
    {"a_destroyed_queue_is_refused", "Refusals: the number of a destroyed queue is refused."},
    {"a_wait_for_an_unknown_token_ends",
     "Refusals: test of a token that was not given out returns an error or NPUSHMEM_OK, not NPUSHMEM_AGAIN for ever."},
    {"unknown_memory_is_refused", "Refusals: a number of remote memory that was not given out is refused."},
    {"released_memory_is_refused", "Refusals: the number of released remote memory is refused."},
    {"memory_of_another_pe_is_refused", "Refusals: remote memory is refused in an operation that names another PE."},
    {"operations_on_deregistered_memory_end",
     "deregister_memory: operations on the memory end afterwards, with or without an error, and do not access it."},
    {"offsets_that_wrap_around_are_refused", "Refusals: a range whose end exceeds 64 bits is refused."},
    {"sizes_beyond_the_region_are_refused", "Refusals: a range that ends outside the remote memory is refused."},
    {"null_buffers_are_refused_unless_empty", "put and get: a null local pointer is refused, except for 0 bytes."},
    {"handles_of_a_wrong_length_are_refused",
     "Refusals: a handle that is empty, truncated or too long is refused with a message."},
    {"handles_with_a_changed_byte_do_no_harm",
     "Refusals: a handle with a changed byte is refused, or harms no other memory; one whose first byte has changed is "
     "refused."},
    {"a_handle_under_another_number_does_no_harm",
     "import_memory: a handle under the number of another PE is refused, or harms no other memory."},
    {"malformed_addresses_are_unreachable_or_refused",
     "Refusals: reach and connect return for a malformed address, with a reason if they refuse it."},
    {"peers_with_unknown_numbers_do_no_harm",
     "reach and connect: a PE number outside the job gets a reason, and does not affect the other peers."},
    {"random_sequences_match_the_model",
     "All functions: a random sequence of operations has the effects that transport.h allows (the failure prints the "
     "reduced sequence)."},
    {"quiet_covers_every_operation",
     "Completion: one quiet completes and delivers operations of every kind that were posted together."},
    {"a_fence_orders_every_update_before_puts",
     "Ordering: fence orders every kind of update (put, put_signal, atomics but FETCH) before later puts to the same "
     "peer."},
    {"tokens_complete_one_by_one", "Completion: each outstanding token stands for its own operation."},
    {"signals_are_set_and_added",
     "npushmem_put_signal: NPUSHMEM_SIGNAL_SET replaces the signal word, NPUSHMEM_SIGNAL_ADD adds to it."},
    {"closing_leaves_no_descriptor", "close releases the descriptors of the instance."},
    {"more_pes_are_reached_as_few_are",
     "reach: what a PE offers to itself and to a neighbour does not depend on the number of PEs."},
    {"costs_are_plausible",
     "npushmem_reach: latency_ns and bytes_per_second are in their units, and 0 without a path."},
    {"rails_are_plausible",
     "npushmem_device: rail is one more than the number of a rail, or 0, and reserved fields are 0."},
    {"forget_ends_outstanding_operations",
     "forget: outstanding operations to the peer end with NPUSHMEM_OK or NPUSHMEM_E_PEER_DEAD without a call of the "
     "peer."},
    {"operations_after_forget_end",
     "forget: it may be repeated; later operations to the peer end with NPUSHMEM_OK or NPUSHMEM_E_PEER_DEAD."},
    {"forget_leaves_other_peers_alone", "forget: operations to other peers are not affected."},
    {"forget_without_a_peer_has_no_effect",
     "forget: a number that is no peer's is refused with NPUSHMEM_E_ARGUMENT, or has no effect."},
    {"forget_is_no_event_when_nothing_is_outstanding", "forget causes no event if nothing is outstanding to the peer."},
    {"forget_keeps_mapped_memory", "forget: mapped memory of the peer remains mapped until release_memory."},
    {"arrivals_are_reported",
     "report_arrivals: the host's function is called after each operation of a peer has changed registered memory, "
     "without a call of the host."},
    {"processes_reach_each_other", "put and atomic work between processes."},
    {"two_processes_all_to_all", "All operations work among 2 processes, each with all."},
    {"four_processes_all_to_all", "All operations work among 4 processes, each with all."},
    {"eight_processes_all_to_all", "All operations work among 8 processes, each with all."},
    {"put_to_an_idle_pe",
     "Progress of the target: with NPUSHMEM_CAP_TARGET_PROGRESS a put is delivered while its target makes no call, "
     "else when the target calls again."},
    {"get_from_an_idle_pe",
     "Progress of the target: with NPUSHMEM_CAP_TARGET_PROGRESS a get completes while its target makes no call, else "
     "when the target calls again."},
    {"atomic_on_an_idle_pe",
     "Progress of the target: with NPUSHMEM_CAP_TARGET_PROGRESS an atomic completes while its target makes no call, "
     "else when the target calls again."},
    {"put_signal_to_an_idle_pe",
     "Progress of the target: with NPUSHMEM_CAP_TARGET_PROGRESS a put_signal is delivered while its target makes no "
     "call, else when the target calls again."},
    {"altered_addresses",
     "Refusals: an address with an altered byte is refused with a reason or accepted; no PE crashes or hangs, and "
     "other PEs are not affected."},
    {"killed_during_puts",
     "Death of a peer: puts to it and quiet end with a failure, one event reports it, and other peers are not "
     "affected."},
    {"killed_during_gets",
     "Death of a peer: gets from it and quiet end with a failure, one event reports it, and other peers are not "
     "affected."},
    {"killed_during_atomics",
     "Death of a peer: atomics on it and quiet end with a failure, one event reports it, and other peers are not "
     "affected."},
    {"killed_during_strided_puts",
     "Death of a peer: strided puts to it and quiet end with a failure, one event reports it, and other peers are not "
     "affected."},
    {"killed_during_put_signals",
     "Death of a peer: put_signals to it and quiet end with a failure, one event reports it, and other peers are not "
     "affected."},
    {"killed_during_fences_and_quiets",
     "Death of a peer: fence and quiet return, one event reports it, and other peers are not affected."},
    {"killed_during_registrations",
     "Death of a peer: memory can be registered, imported and released beside it, and other peers are not affected."},
    {"killed_while_idle", "Death of a peer: one event reports it, also if nothing was posted to it."},
    {"killed_before_reach", "Death of a peer: reach of a dead peer returns with a reason, and later calls end."},
    {"killed_before_connect",
     "Death of a peer: connect to a dead peer returns, with a message if it fails, and later calls end."},
    {"killed_before_import",
     "Death of a peer: import_memory for a dead peer returns, with a message if it fails, and later calls end."},
    {"killed_before_the_first_operation",
     "Death of a peer: the first operations to a dead peer end, and with NPUSHMEM_CAP_REPORTS_DEATH one event reports "
     "it."},
    {"each_death_is_reported_once", "NPUSHMEM_CAP_REPORTS_DEATH: poll_event reports each dead peer once."},
    {"a_normal_end_disturbs_nobody",
     "Death of a peer: a peer that has called close is not dead; PEs with nothing outstanding to it see no event and "
     "no "
     "error."},
    {"a_stopped_pe_is_not_dead",
     "Death of a peer: a peer that is stopped for less than any timeout is not dead, and no operation is lost."},
};

}  // namespace

std::string transport_rule_of(std::string_view case_name) {
    const auto* const found = std::find_if(std::begin(transport_rules), std::end(transport_rules),
                                           [case_name](const auto& row) { return row.first == case_name; });
    if (found == std::end(transport_rules))
        throw std::logic_error("no rule is stated for the case " + std::string(case_name));
    return std::string(found->second);
}

}  // namespace npushmem::contract
