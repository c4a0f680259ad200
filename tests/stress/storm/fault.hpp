// SPDX-License-Identifier: BSD-3-Clause
// What the storm does to a job: which fault, at which point of which PE, under which launcher and transports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::storm {

// What a fault does to the job, and so what the job must report.
enum class Effect {
    ends_pe,        // a PE ends abnormally: the launcher names it and returns its status
    leaves,         // a PE exits with 0 before the others have finished: they report it
    stops,          // a PE stops and continues: the job succeeds
    ends_launcher,  // nobody is left to report
    ends_supervisor,
    interrupts,  // a signal to the launcher
    may_fail,    // the job succeeds, or it fails with a message
    survived,    // a PE ends abnormally, and the others finish without it; the launcher reports as for ends_pe
};

struct Kind {
    std::string_view name;
    Effect effect;
    int status;              // of the job under npushmem-run; -1: any failure
    bool whole_job = false;  // a limit of the whole job instead of a fault of a PE
};

const std::vector<Kind>& kinds();
// True for a point during the start, which no job survives.
bool is_before_first_call(std::string_view point);
// The named stages: before start-up, its steps, the calls of the program, the steps of finalize, after it.
const std::vector<std::string>& points();

struct Launcher {
    std::string name;
    bool is_ours;                     // npushmem-run, which ends a job at the first failure and names its cause
    bool emulates_hosts;              // has the option --nodes
    bool reports_deaths;              // it, or the bootstrap, reports which PE has ended
    std::vector<std::string> before;  // words before the number of PEs
    std::vector<std::string> after;   // words after it
};

struct Transports {
    std::string name;
    std::vector<std::string> environment;
    bool needs_run = false;  // PEs on emulated hosts
};

struct Victim {
    int pe = 0;
    std::string point;
    int delay_us = 0;  // after the point; 0: exactly there
};

struct Fault {
    const Kind* kind = nullptr;
    const Launcher* launcher = nullptr;
    const Transports* transports = nullptr;
    int npes = 0;
    std::vector<Victim> victims;  // empty for a fault of the whole job
    int amount = 0;               // of a limit; milliseconds of a stop

    [[nodiscard]] std::string text() const;
};

// The launchers and transports of this machine and build.
struct Surroundings {
    std::vector<Launcher> launchers;
    std::vector<Transports> transports;
};

// The fault with this number of the storm with this seed. `only`: a part of the fault's text; draws until it is there.
Fault choose_fault(const Surroundings& surroundings, std::uint64_t seed, std::uint64_t number, std::string_view only);

}  // namespace npushmem::storm
