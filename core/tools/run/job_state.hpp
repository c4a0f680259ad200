// The rules by which a job ends, as a state machine without system calls: events in, orders out. Time is handed in.
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

#include "core/tools/run/exit_requests.hpp"
#include "core/tools/run/pe_end.hpp"

namespace npushmem::run {

using Clock = std::chrono::steady_clock;

// What the launcher must do now, in this order.
struct Orders {
    std::vector<std::string> messages;
    std::vector<int> signals;  // to every PE that runs
    bool close = false;        // kill whatever is left of the job
    bool look = false;         // have all ends up to now reported, then call JobState::looked
};

class JobState {
public:
    // How long PEs may take to end by themselves after TERM.
    static constexpr std::chrono::milliseconds grace{400};
    // How long the end that made a PE unable to go on is waited for where a PE is a shell: it ends after its program.
    static constexpr std::chrono::milliseconds cause_limit{250};

    // Without `limit` the job may run for ever.
    // `noun`: for messages, what the processes are. `ending_signal` orders them to end.
    JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit, const char* noun = "PE",
             int ending_signal = SIGTERM);

    void pe_started() { ++started_; }
    // `text` describes the end for a person; it is shown if this is the first failure.
    Orders pe_ended(const PeEnd& end, const std::string& text, Clock::time_point now);
    // A PE could not be started, or the launcher lost its means: ends the job with `status`.
    Orders failed(int status, const std::string& message);
    // A PE called npushmem_global_exit: the job ends with its status, which may be 0. Or it cannot go on, often because
    // of another's end, which it may have seen before the launcher: then the job ends when that has been looked for.
    // The end of a PE that has said that it cannot go on is no cause.
    Orders exit_requested(const ExitRequest& request, Clock::time_point now);
    // Every end of a PE of this host that another PE can have noticed before the last order to look has been told.
    // Across hosts the one that cannot go on may still be named instead.
    void looked(Clock::time_point now);
    // A job that would have succeeded ends with `status`, because of calls that failed.
    void calls_failed(int status) { status_ = status; }
    // The launcher of the whole job, which has reported why, orders this part of it to end.
    Orders end_ordered(Clock::time_point now);
    // A signal that the launcher got and forwards.
    Orders signalled(int signal);
    // To be called when `deadline` has passed.
    Orders expired(Clock::time_point now);

    [[nodiscard]] std::optional<Clock::time_point> deadline() const;
    [[nodiscard]] bool closing() const { return phase_ == Phase::closing; }
    // As long as the outcome is unknown, the job has failed.
    [[nodiscard]] int exit_status() const;
    [[nodiscard]] int running() const { return started_ - ended_; }

private:
    enum class Phase { running, ending, closing };

    Orders end_job(int status, std::string message, Clock::time_point now);
    [[nodiscard]] bool has_said_why(const PeEnd& end) const;
    Orders end_as(const ExitRequest& request, Clock::time_point now);
    Orders close_job();
    [[nodiscard]] std::string running_pes() const;

    int npes_;
    const char* noun_;
    int ending_signal_;
    int started_ = 0;
    int ended_ = 0;
    int interruptions_ = 0;  // INT and TERM that the launcher got
    Phase phase_ = Phase::running;
    std::vector<ExitRequest> held_;  // of PEs that cannot go on, until the cause has been looked for
    std::optional<int> status_;
    std::optional<std::chrono::milliseconds> limit_;
    std::optional<Clock::time_point> deadline_;
    std::optional<Clock::time_point> cause_deadline_;  // no cause was found yet for what was held
};

}  // namespace npushmem::run
