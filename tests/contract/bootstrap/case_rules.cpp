// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/case_rules.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace npushmem::contract {
namespace {

constexpr std::pair<std::string_view, std::string_view> bootstrap_rules[] = {
    {"gathers_every_size", "allgather: contributions of every size arrive in order of rank."},
    {"gathers_in_place", "allgather: `send` may be the own rank's place in `receive`."},
    {"gathers_hundreds_of_times", "allgather: successive calls do not mix."},
    {"gathers_nothing_repeatedly", "allgather: 0 bytes are allowed, and are a barrier."},
    {"gathers_16_mib_of_each_rank", "allgather: contributions of 16 MiB arrive completely."},
    {"gathers_into_nothing_but_the_buffer", "allgather: no byte outside `receive` changes."},
    {"different_sizes_fail_everywhere",
     "Collectives: a rank whose `bytes` differ from the others' fails the job on every rank."},
    {"nobody_leaves_before_all_have_entered", "barrier: no rank returns before all have entered."},
    {"barriers_and_gathers_mix",
     "Collectives: barriers and allgathers may alternate in any order that is the same on all ranks."},
    {"a_thousand_rounds_succeed", "Collectives: any number of successive calls succeeds."},
    {"abort_wakes_who_waits_in_a_barrier", "Failures: abort ends the barrier of every other rank with its reason."},
    {"abort_wakes_who_waits_in_an_allgather",
     "Failures: abort ends the allgather of every other rank with its reason."},
    {"check_reports_an_abort", "check: it reports the abort of another rank with its reason."},
    {"all_may_abort_at_once", "abort: all ranks may call it at the same time."},
    {"a_very_long_reason_arrives_in_part_or_whole", "abort: a long reason arrives completely or as its first part."},
    {"an_abort_without_a_reason_arrives", "abort: an empty reason is a failure for the other ranks as well."},
    {"calls_after_an_abort_fail",
     "Failures: a job that has failed stays failed; later calls return an error and do not wait."},
    {"check_never_blocks", "check: it returns without waiting for another rank."},
    {"who_leaves_early_is_missed", "Failures: a rank that has called close fails a collective that needs it."},
    {"rank_0_dies_before_open", "Failures: open fails in time on every rank if rank 0 dies before it joins."},
    {"the_last_rank_dies_before_open",
     "Failures: open fails in time on every rank if the last rank dies before it joins."},
    {"rank_0_dies_inside_open", "Failures: open fails in time on every rank if rank 0 dies in it."},
    {"the_last_rank_dies_inside_open", "Failures: open fails in time on every rank if the last rank dies in it."},
    {"rank_0_dies_in_a_barrier", "Failures: the current or next call of every rank fails if rank 0 dies in a barrier."},
    {"a_middle_rank_dies_in_a_barrier",
     "Failures: the current or next call of every rank fails if a middle rank dies in a barrier."},
    {"the_last_rank_dies_in_a_barrier",
     "Failures: the current or next call of every rank fails if the last rank dies in a barrier."},
    {"rank_0_dies_in_an_allgather",
     "Failures: the current or next call of every rank fails if rank 0 dies in an allgather."},
    {"a_middle_rank_dies_in_an_allgather",
     "Failures: the current or next call of every rank fails if a middle rank dies in an allgather."},
    {"the_last_rank_dies_in_an_allgather",
     "Failures: the current or next call of every rank fails if the last rank dies in an allgather."},
    {"rank_0_dies_between_calls", "Failures: the next call of every rank fails if rank 0 dies between two calls."},
    {"the_last_rank_dies_between_calls",
     "Failures: the next call of every rank fails if the last rank dies between two calls."},
    {"check_reports_a_dead_rank", "check: it reports a rank that has died."},
    {"rank_0_dies_after_its_last_barrier",
     "Failures: the last barrier of the others completes or reports the death of rank 0, and close returns."},
    {"the_last_rank_dies_after_its_last_barrier",
     "Failures: the last barrier of the others completes or reports the death of the last rank, and close returns."},
    {"rank_0_dies_after_its_last_allgather",
     "Failures: the last allgather of the others completes or reports the death of rank 0, and close returns."},
    {"ranks_are_numbered", "open: the ranks are numbered from 0 to nranks - 1, and allgather uses this order."},
    {"the_numbers_of_own_ranks_are_used", "open: a rank and a number of ranks that are given are used."},
    {"joins_and_leaves_repeatedly",
     "close: a process can leave a job and join the next one; ranks that are still in the last barrier do not notice."},
    {"joins_and_leaves_without_a_call", "close: it leaves a job without any collective."},
    {"the_last_rank_comes_late", "open: it waits for the last rank within its time limit."},
    {"rank_0_comes_late", "open: it waits for rank 0 within its time limit."},
    {"leaves_nothing_behind", "close: it releases descriptors and threads, also after a failure."},
    {"makes_ids_that_differ", "get_uniqueid: each id differs from all others."},
    {"ids_of_garbage_are_rejected", "open: bytes that are no id are refused with a message."},
    {"an_id_whose_maker_has_gone_fails_or_serves",
     "open: with the id of a process that has ended it succeeds or fails in time."},
    {"two_jobs_at_once_do_not_mix", "get_uniqueid: jobs with different ids do not mix."},
    {"ranks_outside_the_job_are_refused", "open: a rank outside 0 to nranks - 1 is refused."},
    {"a_job_of_no_ranks_is_refused", "open: a job of 0 ranks is refused."},
    {"one_number_given_to_two_ranks_fails_everywhere", "open: it fails on every rank if two ranks have one number."},
    {"ranks_that_disagree_about_their_number_fail_everywhere",
     "open: it fails on every rank if the ranks disagree about nranks."},
};

}  // namespace

std::string bootstrap_rule_of(std::string_view case_name) {
    const auto* const found = std::find_if(std::begin(bootstrap_rules), std::end(bootstrap_rules),
                                           [case_name](const auto& row) { return row.first == case_name; });
    if (found == std::end(bootstrap_rules))
        throw std::logic_error("no rule is stated for the case " + std::string(case_name));
    return std::string(found->second);
}

}  // namespace npushmem::contract
