// SPDX-License-Identifier: BSD-3-Clause
// Cases whose PEs are processes: for what one process cannot show, such as access to another process's memory, or a PE
// that is killed.
//
// The process of a case (the parent) starts one process per PE, which executes the test program again. Both sides use
// GoogleTest's assertions: a failed one in any PE fails the case, with the PE's output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/fabric.hpp"
#include "tests/contract/pe_channel.hpp"

namespace npushmem::contract {

// Stages have different names within a case.

struct ProcessRole;

// The side of one PE.
class PeProcess {
public:
    PeProcess(const Subject& subject, const ProcessRole& role);
    PeProcess(const PeProcess&) = delete;
    PeProcess& operator=(const PeProcess&) = delete;
    ~PeProcess();

    // Opens the transport, publishes the memory, exchanges addresses and handles with all PEs, connects to those that
    // it reaches. Collective over the processes that `PeProcesses::connect` serves.
    void connect();
    [[nodiscard]] Pe& pe();
    [[nodiscard]] int number() const;
    [[nodiscard]] int npes() const;

    // Reports to the parent that this PE has reached a stage, and waits until the parent sends `go`. While it waits, it
    // makes progress with its transport, unless `idle`: then it makes no call to it.
    enum class Waiting { with_progress, idle };
    void reached(const std::string& stage, Waiting waiting = Waiting::with_progress);
    // Reports to the parent without waiting.
    void report_stage(const std::string& stage);

private:
    struct State;
    std::unique_ptr<State> state_;
};

// The side of the parent.
class PeProcesses {
public:
    // Starts the processes of PEs 0 to npes - 1; `bytes_per_pe` of symmetric memory each. The job has `absent` further
    // PEs without a process: the parent may open instances for their numbers, which no other instance has.
    PeProcesses(const Subject& subject, int npes, std::uint64_t bytes_per_pe = Fabric::pe_bytes, int absent = 0);
    PeProcesses(const PeProcesses&) = delete;
    PeProcesses& operator=(const PeProcesses&) = delete;
    ~PeProcesses();  // kills those that are left

    [[nodiscard]] int npes() const;
    // Serves PeProcess::connect of all processes. Returns false, with a failed expectation, if a process ended.
    // `opened_here`: the instances of absent PEs, for which the processes call `reach`, but not `connect`.
    bool connect(const std::vector<const Pe*>& opened_here = {});
    // Waits until every living PE has reported or reached `stage`. Returns false, with a failed expectation, if one
    // ends with a failure before, or does not reach it within twice the subject's wait_timeout: so that the PE's own
    // wait, which says more, ends first. A PE that has ended with success is not waited for.
    bool wait_for(const std::string& stage);
    // The same for this PE, which must not end before.
    bool wait_for(int pe, const std::string& stage);
    // Lets one PE, or every living PE, return from `reached`.
    void go(int pe);
    void go_all();
    // SIGKILL, SIGSTOP, SIGCONT; after SIGKILL waits until the process has gone and no longer counts it as living. A
    // process that does not end within 30 s is a failed expectation.
    void signal(int pe, int number);
    // What this PE published in `connect`. Throws std::logic_error before `connect` has returned true.
    [[nodiscard]] PeConnectInfo connect_info_of(int pe) const;
    // Waits until all living processes have ended; each must end with success, within twice the subject's wait_timeout
    // or 30 s, whichever is longer.
    void expect_all_to_end();

private:
    struct State;
    std::unique_ptr<State> state_;
};

// One kind of case: `parent` runs in the case's process, `pe` in each process that PeProcesses starts.
struct ProcessCase {
    const char* name;
    std::uint64_t needs;  // capabilities that some pair of different PEs must offer, else the case is skipped
    void (*parent)(const Subject& subject);
    void (*pe)(PeProcess& process);
};

std::vector<ProcessCase> reach_cases();     // processes access each other's memory
std::vector<ProcessCase> death_cases();     // a PE that is killed
std::vector<ProcessCase> progress_cases();  // who progresses the target; malformed messages

}  // namespace npushmem::contract
