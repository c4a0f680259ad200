// SPDX-License-Identifier: BSD-3-Clause
// The end of a job among its PEs: this PE publishes that it has finalized, and finds out whether others have. In a job
// that continues without its dead, PEs report deaths to PEs of other hosts, which cannot see the process, as
// departures.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/mapped_slices.hpp"

namespace npushmem {

class Departures {
public:
    // Both outlive this.
    Departures(const JobMembership& job, MappedSlices& slices) : job_(job), slices_(slices) {}
    Departures(const Departures&) = delete;
    Departures& operator=(const Departures&) = delete;

    // Returns whether any PE may have finalized that this one needs after its first `barriers` barriers; JobLiveness
    // checks which. Any thread.
    [[nodiscard]] bool any(std::uint64_t barriers) const;
    // Publishes to the PEs of this host that this PE has left its last barrier, which had this number.
    // `all_have_entered`: all PEs had entered it, so from now on none of them is missing.
    void publish(std::uint64_t last_barrier, bool all_have_entered);
    // Collective: returns when all PEs have arrived. No PE may release its memory or its transports earlier, while the
    // last signals of another are in flight. The bootstrap has its own connections, so it can synchronise the PEs.
    Status wait_for_others(JobTransports& transports, std::uint64_t last_barrier);

    // Reports a death that this PE has found, to all PEs that cannot see the process; once for each PE. Does not wait:
    // a thread sends it. False: there is no thread, call it again. Any thread.
    bool report_death(JobTransports& transports, int dead);
    // Reports to the PEs of other hosts that this PE has left its last barrier, because they may wait for it in the
    // next one. Does not wait either.
    void report_end(JobTransports& transports, std::uint64_t last_barrier);
    // Ends these reports. Call it before the transports end.
    void end_reports();

private:
    struct Report {
        Departure departure;
        int to;
    };

    // With reports_lock_ held. False: there is no thread, and nothing is sent.
    bool send_by_thread(JobTransports& transports);
    void send_reports(const DelayedTask& task);
    [[nodiscard]] bool place(const Report& report, const RemoteAccess::WaitFunction& briefly) const;
    void send(JobTransports& transports, std::uint64_t last_barrier, const DelayedTask& task) const;

    const JobMembership& job_;
    MappedSlices& slices_;
    std::atomic<bool> passed_last_barrier_{false};
    std::unique_ptr<RemoteAccess> remote_;  // of the reports: their failures are nobody's; set before the thread starts
    std::mutex reports_lock_;               // for all below
    bool reports_ended_ = false;
    std::set<int> reported_;
    std::vector<Report> reports_;  // not taken by the thread yet
    bool is_sending_ = false;      // the thread will take them
    std::unique_ptr<DelayedTask> sender_;
};

}  // namespace npushmem
