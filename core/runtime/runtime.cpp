#include "core/runtime/runtime.hpp"

namespace npushmem {

RuntimeParts::~RuntimeParts() {
    // The wait services outlive the parts that they ask.
    if (waiting) {
        waiting->progress = nullptr;
        waiting->liveness.watch(-1, nullptr, nullptr, nullptr);
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
      heap_peers_(*parts_.job, *parts_.slices, parts_.transports->remote(), synchronization_),
      collective_heap_(parts_.slices->heap(), heap_peers_),
      npu_({settings(), *parts_.job, *parts_.slices, parts_.transports->remote_peers(), *parts_.waiting,
            parts_.remote_mode}) {}

Status Runtime::finish() {
    // Finalize completes kernels that are still queued; the program must ask for their failures.
    npu_.close();
    parts_.reports->publish_counters();
    synchronization_.world().disable_statistics();  // so that no PE writes what PE 0 reads after the last barrier
    if (Status done = synchronization_.barrier_all(); !done.ok()) return done;
    parts_.departures->publish(synchronization_.world().barriers());
    if (settings().stats && my_pe_ == 0)
        if (Status printed = parts_.reports->print_statistics(); !printed.ok())
            log().line(LogLevel::warn, "report", printed.message());
    return parts_.departures->wait_for_others(*parts_.transports, synchronization_.world().barriers());
}

}  // namespace npushmem
