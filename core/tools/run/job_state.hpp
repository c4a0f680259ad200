// The rules by which a job ends, as a state machine without system calls: events in, commands out. Time is handed in.
//
//   starting/running ──failure──▶ ending (TERM sent) ──grace over──▶ closing (everything is killed)
//          │                          └──all ended──▶ closing
//          └── all ended, time limit's grace, second INT or TERM, failure before all have started ──▶ closing
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/exit_requests.hpp"

namespace npushmem::run {

using Clock = std::chrono::steady_clock;

// What the launcher must do now, in this order.
struct Commands {
    std::vector<std::string> messages;
    std::vector<int> signals;  // to every PE that runs
    bool close = false;        // kill whatever is left of the job
    bool flush_exits = false;  // have all ends up to now reported, then call JobState::exits_flushed
};

class JobState {
public:
    // How long PEs may take to end by themselves after TERM.
    static constexpr std::chrono::milliseconds grace{400};
    // How long the end that made a PE unable to go on is waited for where a PE is a shell: it ends after its program.
    static constexpr std::chrono::milliseconds cause_timeout{250};

    // Without `limit` the job may run for ever.
    // `noun`: for messages, what the processes are. `ending_signal` commands them to end.
    JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit, const char* noun = "PE",
             int ending_signal = SIGTERM);

    void pe_started() { ++started_; }
    // `text` describes the end for a person; it is shown if this is the first failure.
    Commands pe_ended(const ExitRecord& end, const std::string& text, Clock::time_point now);
    // A PE could not be started, or the launcher lost its means: ends the job with `status`.
    Commands failed(int status, const std::string& message);
    // A PE called npushmem_global_exit: the job ends with its status, which may be 0. Or it cannot go on, often because
    // of another's end, which it may have seen before the launcher: then the job ends once that end has been searched
    // for. The end of a PE that has said that it cannot go on is no cause.
    Commands exit_requested(const ExitRequest& request, Clock::time_point now);
    // Every end of a PE of this host that another PE can have noticed before the last flush_exits has been reported.
    // Across hosts the one that cannot go on may still be named instead.
    void exits_flushed(Clock::time_point now);
    // A job that would have succeeded ends with `status`, because of calls that failed.
    void calls_failed(int status) { status_ = status; }
    // The launcher of the whole job, which has reported why, commands the PEs of this host to end.
    Commands stop_requested(Clock::time_point now);
    // A signal that the launcher got and forwards.
    Commands signalled(int signal);
    // To be called when `deadline` has passed.
    Commands expired(Clock::time_point now);

    [[nodiscard]] std::optional<Clock::time_point> deadline() const;
    [[nodiscard]] bool closing() const { return phase_ == Phase::closing; }
    // As long as the outcome is unknown, the job has failed.
    [[nodiscard]] int exit_status() const;
    [[nodiscard]] int running() const { return started_ - ended_; }

private:
    enum class Phase { running, ending, closing };

    Commands end_job(int status, std::string message, Clock::time_point now);
    [[nodiscard]] bool has_reported_failure(const ExitRecord& end) const;
    Commands end_with(const ExitRequest& request, Clock::time_point now);
    Commands close_job();
    [[nodiscard]] std::string running_pes() const;

    int npes_;
    const char* noun_;
    int ending_signal_;
    int started_ = 0;
    int ended_ = 0;
    int interruptions_ = 0;  // INT and TERM that the launcher got
    Phase phase_ = Phase::running;
    std::vector<ExitRequest> deferred_failures_;  // of PEs that cannot go on, until the cause has been looked for
    std::optional<int> status_;
    std::optional<std::chrono::milliseconds> limit_;
    std::optional<Clock::time_point> deadline_;
    std::optional<Clock::time_point> cause_deadline_;  // no cause was found yet for what was held
};

}  // namespace npushmem::run
