// SPDX-License-Identifier: BSD-3-Clause
// The reports of a running PE: what start-up selected, as values and as text, and statistics.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/wait.hpp"
#include "core/memory/control_block.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/runtime/selections.hpp"

namespace npushmem {

// The table that NPUSHMEM_STATS=1 prints at finalize.

// A snapshot of BarrierCounters and WaitCounters.
struct PeStatistics {
    std::uint64_t barriers = 0;
    std::uint64_t timed = 0;
    std::uint64_t nanoseconds = 0;
    std::uint64_t longest = 0;
    std::uint64_t last = 0;
    std::uint64_t late_nanoseconds = 0;
    std::uint64_t waits = 0;
    std::uint64_t wait_nanoseconds = 0;
    std::uint64_t spins = 0;
    std::uint64_t yields = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t parks = 0;
    std::uint64_t liveness_checks = 0;
    std::uint64_t wakes = 0;

    bool operator==(const PeStatistics&) const = default;
};

// Copies the counters to where other PEs read them.
void publish(const WaitCounters& waits, BarrierCounters& counts);
PeStatistics read_statistics(const BarrierCounters& counts);

// Returns a table with a line per PE and the sum. With more than `max_shown` PEs, it shows those that arrived last most
// often. `pes` is indexed by PE; one barrier in `every` was timed.
std::string describe_statistics(const std::vector<PeStatistics>& pes, std::uint64_t every, std::size_t max_shown = 16);

class RuntimeReports {
public:
    // The objects about which this reports; all outlive it.
    struct Subjects {
        const Settings& settings;
        const JobMembership& job;
        const WaitServices& waiting;
        MappedSlices& slices;
        JobTransports& transports;
    };

    RuntimeReports(const Subjects& subjects, JobReport job, HostNics nics)
        : subjects_(subjects), job_(std::move(job)), job_text_(describe(job_)), nics_(std::move(nics)) {}
    RuntimeReports(const RuntimeReports&) = delete;
    RuntimeReports& operator=(const RuntimeReports&) = delete;

    [[nodiscard]] const std::string& job_text() const { return job_text_; }
    [[nodiscard]] const std::string& map_text() const { return subjects_.transports.map().describe(); }
    // The first call may inspect the machine. Any thread.
    [[nodiscard]] const std::string& nic_text();

    // The selections as values. Any thread; `pe` exists.
    [[nodiscard]] const JobReport& job() const { return job_; }
    [[nodiscard]] RouteReport route(int pe) const;
    [[nodiscard]] PeNics nics_of(int pe) const;
    // Everything that the texts report, and the variables that are set, as one JSON object on one line, without a
    // newline.
    [[nodiscard]] std::string json(const Config& config);
    // Returns this PE's counters; those of barriers count only with NPUSHMEM_STATS. Any thread.
    [[nodiscard]] PeStatistics statistics();
    // Copies the counters of waits to where other PEs read them.
    void publish_counters();
    // Prints the statistics of all PEs. Call it after the last barrier: counters no longer change, and all memory still
    // exists.
    Status print_statistics();

private:
    const NicPreview& nic_preview();  // under lock_

    Subjects subjects_;
    JobReport job_;
    std::string job_text_;
    HostNics nics_;
    std::mutex lock_;
    std::optional<NicPreview> nic_preview_;  // under lock_
    std::string nic_text_;                   // under lock_; empty: not yet written
};

}  // namespace npushmem
