// The reports of a running PE, for people: texts on request, and statistics.
#pragma once

#include <mutex>
#include <string>

#include "core/base/config.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/runtime/statistics_report.hpp"

namespace npushmem {

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

    // `job_text` describes the job. `nic_text` describes the NIC assignment; empty: none was made.
    RuntimeReports(const Subjects& subjects, std::string job_text, std::string nic_text)
        : subjects_(subjects), job_text_(std::move(job_text)), nic_text_(std::move(nic_text)) {}
    RuntimeReports(const RuntimeReports&) = delete;
    RuntimeReports& operator=(const RuntimeReports&) = delete;

    [[nodiscard]] const std::string& job_text() const { return job_text_; }
    [[nodiscard]] const std::string& map_text() const { return subjects_.transports.map().describe(); }
    // The first call inspects the machine. Any thread.
    [[nodiscard]] const std::string& nic_text();
    // Returns this PE's counters; those of barriers count only with NPUSHMEM_STATS. Any thread.
    [[nodiscard]] PeStatistics statistics();
    // Copies the counters of waits to where other PEs read them.
    void publish_counters();
    // Prints the statistics of all PEs. Call it after the last barrier: counters no longer change, and all memory still
    // exists.
    Status print_statistics();

private:
    Subjects subjects_;
    std::string job_text_;
    std::mutex lock_;
    std::string nic_text_;  // under lock_
};

}  // namespace npushmem
