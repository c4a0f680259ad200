// SPDX-License-Identifier: BSD-3-Clause
// The storm's result as a table in Markdown: rows are kinds of faults, columns are selections of transports. A cell has
// the number of faults, of those with a defect whose cause is known, of those with another defect, of jobs that ended
// late, and the longest end.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "tests/stress/storm/job.hpp"

namespace npushmem::storm {

class Table {
public:
    enum class Outcome { good, known, defect };
    void add(const Fault& fault, const JobResult& result, Outcome outcome);
    [[nodiscard]] std::string text() const;

    // The time in which a job ends after its fault on a machine that nobody else loads.
    static constexpr std::chrono::seconds late{5};
    // A job that succeeds or meets no fault takes as long as the machine needs.
    static bool is_late(const Fault& fault, const JobResult& result) {
        const bool has_fault_time = !fault.kind->whole_job && !result.injected.empty();
        return result.took > late && (has_fault_time || result.status != 0);
    }

private:
    struct Cell {
        int faults = 0;
        int injected = 0;
        int known = 0;
        int defects = 0;
        int late = 0;
        double longest = 0.0;  // seconds
        void add(const Cell& other);
        [[nodiscard]] std::string text() const;
    };
    std::map<std::pair<std::string, std::string>, Cell> cells_;  // by kind and transports
    std::map<std::string, Cell> launchers_;
};

}  // namespace npushmem::storm
