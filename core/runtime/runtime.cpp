// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/parking.hpp"

namespace npushmem {

Status WorldSynchronization::quiet() {
    if (!all_mapped_)
        if (Status done = remote_.quiet(); !done.ok()) return done;
    // Stores to mapped memory must leave this CPU before any later load. Pairs with the same fence of a PE that loads
    // a value stored here and then stores a value that this PE loads.
    full_fence();
    return {};
}

Status WorldSynchronization::complete() {
    if (!all_mapped_)
        if (Status done = remote_.complete(); !done.ok()) return done;
    return quiet();
}

// Stores to mapped memory need no fence here: each signal of the barrier releases what its sender stored or acquired
// before, so every PE that leaves the barrier sees the stores of all.
Status WorldSynchronization::barrier_all(const barrier::Plan& plan) {
    if (all_mapped_) [[likely]]
        return world_.sync(plan);
    return coll::sync_after(quiet(), [&] { return world_.sync(plan); });
}

Status WorldSynchronization::barrier_all(std::string_view text) {
    auto choice = world_.choose(text);
    return choice.ok() ? barrier_all(choice.value().plan) : choice.status();
}

WorldHeapPeers::WorldHeapPeers(const JobMembership& job, const MappedSlices& slices, RemoteAccess& remote,
                               WorldSynchronization& synchronization, TeamTable& teams)
    : job_(job), slices_(slices), remote_(remote), synchronization_(synchronization), teams_(teams) {
    if (job.npes() <= max_compared) return;
    const HostLayout& layout = job.layout();
    std::vector<int> pes;
    for (int host = 0; host < layout.hosts(); ++host) pes.push_back(layout.pes_of(host).count);
    sums_ = std::make_unique<CallSums>(slices.control_of(job.local_pes().at(0))->call_sums,
                                       static_cast<std::size_t>(layout.host_of(job.my_pe())), std::move(pes),
                                       [this](std::size_t host, unsigned parity) { return sum_of_host(host, parity); });
}

Status WorldHeapPeers::heap_barrier() {
    Team& living = teams_.living();
    if (&living == &teams_.world())
        return coll::sync_after(synchronization_.complete(), [this] { return synchronization_.own_sync_all(); });
    return coll::sync_after(living.complete(), [&] { return living.sync(); });
}

template <class Value>
Result<Value> WorldHeapPeers::read(int pe, std::uint64_t offset) {
    Value value{};
    if (const void* address = slices_.mapped(pe, offset)) {
        std::memcpy(&value, address, sizeof value);
        return value;
    }
    Status fetched = remote_.get(pe, offset, &value, sizeof value, RemoteAccess::Completion::local);
    return fetched.ok() ? Result<Value>(value) : Result<Value>(fetched);
}

Result<HeapRecord> WorldHeapPeers::record_of(int pe, unsigned parity) {
    return read<HeapRecord>(pe, offsetof(ControlBlock, heap) + parity * sizeof(HeapRecord));
}

Result<std::uint64_t> WorldHeapPeers::sum_of_host(std::size_t host, unsigned parity) {
    const int first = job_.layout().pes_of(static_cast<int>(host)).at(0);
    return read<std::uint64_t>(first, offsetof(ControlBlock, call_sums) + parity * sizeof(std::uint64_t));
}

RuntimeParts::~RuntimeParts() {
    // The wait services outlive the parts that they ask.
    if (waiting) waiting->liveness.on_own_finding(nullptr);
    if (departures) departures->end_reports();
    if (waiting) {
        waiting->progress = {};
        waiting->liveness.watch(-1, nullptr, nullptr, nullptr);
        waiting->recorder.stop();
    }
    if (!slices) return;
    if (Status restored = slices->restore_variables(); !restored.ok())
        log->line(LogLevel::warn, "memory", restored.message());
}

Runtime::Runtime(RuntimeParts parts)
    : parts_(std::move(parts)),
      my_pe_(parts_.job->my_pe()),
      npes_(parts_.job->npes()),
      synchronization_(*parts_.slices, parts_.transports->remote(), parts_.teams->world().barrier()),
      heap_peers_(*parts_.job, *parts_.slices, parts_.transports->remote(), synchronization_, *parts_.teams),
      collective_heap_(parts_.slices->heap(), heap_peers_),
      buffers_(
          parts_.slices->host_memory(), parts_.slices->heap(), collective_heap_, parts_.job->local_index(),
          parts_.job->local_pes().count,
          std::ranges::all_of(parts_.job->local_pes(), [this](int pe) { return parts_.job->sees_process_of(pe); })),
      npu_({settings(), *parts_.job, *parts_.slices, parts_.transports->remote_peers(), *parts_.waiting,
            parts_.remote_mode}) {}

Status Runtime::finish() {
    const CollectiveCall call(parts_.teams->world().calls(), "finalize");
    // Finalize completes kernels that are still queued; the program must ask for their failures.
    npu_.close();
    log().write(LogLevel::debug, "finalize", "kernels: done");
    parts_.reports->publish_counters();
    synchronization_.world().disable_statistics();  // so that no PE writes what PE 0 reads after the last barrier
    Status completed = synchronization_.quiet();
    if (completed.code() == Code::timeout) return completed;
    // Also after a failure: the others wait for this PE.
    Status done = finish_with_all();
    const bool survives = settings().survives_deaths;
    if (survives && completed.code() == Code::peer_dead) completed = {};
    if (!completed.ok()) std::swap(completed, done);  // the first failure counts
    if (ended_with_all_ || !survives || done.code() == Code::timeout) return done;
    return finish_with_the_living(done);
}

// Other PEs may have passed the barriers in which this one failed, or wait for this one in them. That a PE is dead is
// no failure.
Status Runtime::finish_with_the_living(const Status& failed) {
    const std::uint64_t last_barrier = synchronization_.world().barriers();
    parts_.departures->publish(last_barrier, false);
    parts_.departures->report_end(*parts_.transports, last_barrier);
    parts_.teams->publish_ends();
    Status waited = parts_.teams->wait_for_ends();
    return failed.code() == Code::peer_dead ? waited : failed;
}

Status Runtime::finish_with_all() {
    if (Status done = synchronization_.own_sync_all(); !done.ok()) return done;
    log().write(LogLevel::debug, "finalize", "last barrier: done");
    parts_.departures->publish(synchronization_.world().barriers(), true);
    if (settings().survives_deaths) parts_.teams->publish_ends();  // PEs that failed in the barrier wait for them
    if (settings().stats && my_pe_ == 0) {
        if (Status printed = parts_.reports->print_statistics(); !printed.ok())
            log().line(LogLevel::warn, "report", printed.message());
        if (parts_.collectives) (void)std::fputs((parts_.collectives->describe_counts() + "\n").c_str(), stderr);
    }
    Status departed = parts_.departures->wait_for_others(*parts_.transports, synchronization_.world().barriers());
    log().write(LogLevel::debug, "finalize", "departure: {}", departed.ok() ? "done" : departed.message());
    ended_with_all_ = departed.ok();
    return departed;
}

}  // namespace npushmem
