// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/wait_recorder.hpp"

#include <fmt/format.h>

#include <utility>

namespace npushmem {

void WaitRecorder::start(Job job, const Log& log) {
    job_ = std::move(job);
    log_ = &log;
}

PeWait WaitRecorder::record_of(const WaitFor& wait, std::chrono::nanoseconds began) const {
    PeWait out;
    out.since = began.count();
    out.call_number = wait.call_number;
    out.peers = wait.needs.count;
    out.peer = wait.needs.count == 1 ? wait.needs.at(0) : -1;
    set_text(out.call, wait.call);
    set_text(out.what, wait.what);
    set_text(out.team, wait.team);
    // The control block begins the slice. The object may be a variable of the program, outside it.
    const ControlBlock* const slice = job_.control(job_.my_pe);
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(wait.object) - reinterpret_cast<std::uintptr_t>(slice);
    if (wait.object != nullptr && offset < slice->slice_bytes) out.object = offset;
    return out;
}

void WaitRecorder::observe(const void* id, const WaitFor& wait, std::chrono::nanoseconds began,
                           std::chrono::nanoseconds now) {
    if (log_ == nullptr) return;
    // Relaxed: equal only if this thread stored it.
    if (recorded_.load(std::memory_order_relaxed) != id) {
        const void* nothing = nullptr;
        // Acquire. Partner: the release in end(), after which the other thread no longer writes the record.
        if (!recorded_.compare_exchange_strong(nothing, id, std::memory_order_acquire)) return;
        own().wait.write(record_of(wait, began));
    }
    if (job_.report_after > std::chrono::nanoseconds::zero() && now - began >= job_.report_after) report(now);
}

void WaitRecorder::end(const void* id) {
    if (log_ == nullptr || recorded_.load(std::memory_order_relaxed) != id) return;
    own().wait.write({});
    // Release. Partner: the acquire in observe().
    recorded_.store(nullptr, std::memory_order_release);
}

void WaitRecorder::report(std::chrono::nanoseconds now) const {
    SharedTurn& reports = job_.control(job_.local_pes.at(0))->progress.reports;
    if (!reports.take(std::chrono::steady_clock::time_point(now), job_.report_after)) return;
    std::vector<PeProgress> pes;
    for (const int pe : job_.local_pes) {
        const ControlBlock& control = *job_.control(pe);
        const ProcessId process{static_cast<pid_t>(control.process), control.process_start};
        pes.push_back(progress_of(control, process.pid == 0 || is_alive(process)));
    }
    for (const std::string& sentence : describe_progress(pes, now.count()))
        log_->line(LogLevel::warn, "wait", sentence);
    for (const std::string& sentence : describe_disagreements(pes, job_.npes))
        log_->line(LogLevel::warn, "wait", sentence);
    const std::string others = describe_other_hosts(job_.local_pes, job_.npes, job_.remote_state);
    if (!others.empty()) log_->line(LogLevel::warn, "wait", others);
}

}  // namespace npushmem
