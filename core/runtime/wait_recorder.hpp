// SPDX-License-Identifier: BSD-3-Clause
// Records the long waits of this PE in its control block, and reports those of the host's PEs when one lasts for
// NPUSHMEM_REPORT_AFTER.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "core/base/log.hpp"
#include "core/base/wait.hpp"
#include "core/memory/control_block.hpp"
#include "core/runtime/wait_report.hpp"

namespace npushmem {

// If several threads wait, one of them is recorded.
class WaitRecorder final : public WaitObserver {
public:
    struct Job {
        int my_pe = 0;
        int npes = 1;
        PeRange local_pes;                             // of this host
        std::function<ControlBlock*(int pe)> control;  // of a PE of this host
        std::chrono::nanoseconds report_after{0};      // 0: never
        // What this PE knows about a PE of another host; null: nothing.
        std::function<RemotePeState(int pe)> remote_state;
    };

    // Waits are recorded from now on. `log` and the PEs outlive this, or stop() ends their use. Call both while no
    // thread waits.
    void start(Job job, const Log& log);
    void stop() { log_ = nullptr; }

    void observe(const void* id, const WaitFor& wait, std::chrono::nanoseconds began,
                 std::chrono::nanoseconds now) override;
    void end(const void* id) override;

private:
    [[nodiscard]] ProgressRecord& own() const { return job_.control(job_.my_pe)->progress; }
    [[nodiscard]] PeWait record_of(const WaitFor& wait, std::chrono::nanoseconds began) const;
    // Reports, unless a PE of this host has reported within the last period.
    void report(std::chrono::nanoseconds now) const;

    Job job_;
    const Log* log_ = nullptr;                    // null: not started
    std::atomic<const void*> recorded_{nullptr};  // the wait in the record; its thread alone writes the record
};

}  // namespace npushmem
