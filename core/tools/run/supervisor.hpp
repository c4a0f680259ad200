// SPDX-License-Identifier: BSD-3-Clause
// The supervisor is a process between the launcher and the PEs, in a session of its own. It starts and reaps the PEs,
// and kills those that are left at the end. It is the subreaper of all their descendants. It stops when the channel to
// the launcher ends, so it does the same whether the launcher has finished, was killed, or crashed. When the supervisor
// itself is killed, PEs die with it (PR_SET_PDEATHSIG) and the launcher, which is a subreaper as well, reaps their
// orphans.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/tools/run/channel.hpp"
#include "core/tools/run/dispatching_poller.hpp"
#include "core/tools/run/job_log.hpp"
#include "core/tools/run/job_preparation.hpp"

namespace npushmem::run {

class Supervisor {
public:
    // Call it in the forked process. `plan` is the launcher's at the time of the fork.
    Supervisor(JobPlan plan, Channel launcher, JobLog log, DispatchingPoller poller);

    // Returns the process's exit status once all processes of the job have ended.
    int run();

private:
    struct Running {
        int pe = -1;
        FileDescriptor process;
    };
    struct Output {
        FileDescriptor read[2];
        FileDescriptor write[2];
    };

    bool wait_for_start();
    bool start_all();
    bool start_one(int pe);
    bool open_output(Output& output) const;
    bool watch_pe(int pe, int pid, FileDescriptor process, const Output& output);
    void report_failure(int pe, int error, const char* attempt) const;
    void detach_from_terminal() const;
    void run_event_loop();
    void handle_command();
    void flush_exits();
    [[nodiscard]] bool is_any_pe_exiting() const;
    void forward(int signal) const;
    void reap_pe(int pid);
    void wait_for_exiting_pes();
    void report_exits();
    void reap_orphans() const;
    void end_job();
    void show_rest_of_log();

    JobPlan plan_;
    Channel launcher_;
    JobLog log_;
    FileDescriptor errors_;  // the launcher's standard error
    std::string launcher_pipe_;
    DispatchingPoller poller_;
    FileDescriptor children_;  // signalfd of SIGCHLD: something to reap
    FileDescriptor null_;
    std::unordered_map<int, Running> running_;  // by pid; the processes are not reaped, so their pids are not reused
    std::vector<Message> pending_exits_;        // of PEs, not reported yet
    bool closing_ = false;
    bool flush_requested_ = false;
};

}  // namespace npushmem::run
