// SPDX-License-Identifier: BSD-3-Clause
// The launcher of a running job: commands to the supervisor, signals, the time limit, output and messages.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/tools/run/channel.hpp"
#include "core/tools/run/dispatching_poller.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_log.hpp"
#include "core/tools/run/job_output.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/job_state.hpp"
#include "core/tools/run/job_streams.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/start_job.hpp"

namespace npushmem::run {

// One class, although it has more than twenty methods: each event of the loop has one short method that hands it to
// JobState, and execute() carries out the commands. JobOutput shows what results.
class Launcher {
public:
    // The supervisor has been forked already. `supervisor` is the channel to it, `signals` a signalfd of the signals to
    // forward, `terminal_input` a pipe to PE 0 when standard input is a terminal.
    struct Resources {
        Channel supervisor;
        int supervisor_pid;
        FileDescriptor supervisor_process;
        FileDescriptor signals;
        FileDescriptor terminal_input;
        FileDescriptor exit_requests;  // reading end of the pipe that PEs write to
        JobLog log;
        DispatchingPoller poller;
    };
    Launcher(const Options& options, const JobPlan& plan, Resources resources);
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    // Returns the launcher's exit status once all processes of the job have ended.
    int run();

private:
    void watch();
    void start_pes();
    void poll_once();
    [[nodiscard]] std::optional<std::chrono::milliseconds> time_to_wait() const;
    void receive_from_supervisor();
    void handle_message(Received received);
    void exits_flushed();
    void pe_started(const Message& message, std::vector<FileDescriptor> output);
    void tag_output_of(int pe, std::vector<FileDescriptor> output);
    void pe_not_started(const Message& message, const std::string& attempt);
    void pe_ended(const Message& message);
    void report_to_rendezvous(const Message& message, const std::string& how);
    void reap_supervisor();
    void handle_signal();
    void read_exit_requests();
    void read_log();
    void handle_record(const LauncherRecord& record);
    void handle_record_of_host(const LauncherRecord& record);
    void report_to_job_launcher(const Commands& commands);
    [[nodiscard]] LauncherRecord record_of_host(LauncherRecord::Kind kind, const std::string& text) const;
    void fail_for_failed_calls();
    void execute(const Commands& commands);
    void request_exit_flush();
    void close_job();
    void finish_output();
    void report(const std::string& message);
    void report_if_verbose(const std::string& message);
    // On a host of a job that the launcher on another host has started.
    [[nodiscard]] bool is_host_agent() const { return !options_.record_mark.empty(); }

    const Options& options_;
    const JobPlan& plan_;
    Resources resources_;
    ProcessMessages messages_;
    Clock::time_point begin_;
    JobState state_;
    JobOutput output_;
    ExitRequests exit_requests_;
    std::map<int, std::int64_t> failed_calls_;  // of PEs on the job's hosts, reported from there
    std::optional<InputRelay> input_;
    std::unique_ptr<Rendezvous> rendezvous_;
    std::optional<Clock::time_point> supervisor_deadline_;  // set once the job has been closed
    bool supervisor_ended_ = false;
};

}  // namespace npushmem::run
