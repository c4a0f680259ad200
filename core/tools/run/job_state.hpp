// The rules by which a job ends, as a state machine without system calls: events in, commands out. Time is handed in.
//
//   starting/running ──failure──▶ ending (TERM sent) ──grace over──▶ closing (everything is killed)
//          │                          └──all ended──▶ closing
//          └── all ended, time limit's grace, second INT or TERM, failure before all have started ──▶ closing
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/exit_requests.hpp"
#include "core/tools/run/outcome.hpp"

namespace npushmem::run {

using Clock = std::chrono::steady_clock;

// What the launcher must do now, in this order.
struct Commands {
    std::vector<std::string> messages;
    std::vector<int> signals;  // to every PE that runs
    bool close = false;        // kill whatever is left of the job
    bool flush_exits = false;  // have all ends up to now reported, then call JobState::exits_flushed
    // A part of a job reports both to the launcher of the whole job.
    std::optional<ExitRequest> forwarded = std::nullopt;
    std::optional<Outcome> outcome = std::nullopt;
};

// Which processes a launcher has started.
enum class Scope {
    job,    // all PEs of a job
    hosts,  // for each host of a job a process, which stands for the part of the job there
    part,   // the PEs of one host; the launcher of the whole job decides who is named
};

class JobState {
public:
    // How long PEs may take to end by themselves after TERM.
    static constexpr std::chrono::milliseconds grace{400};
    // How long the end that made a PE unable to go on is waited for where a PE is a shell: it ends after its program.
    static constexpr std::chrono::milliseconds cause_timeout{250};
    // How long hosts may take to report the ends of their PEs after one PE of the job could not go on.
    static constexpr std::chrono::milliseconds look_limit{2000};
    // How long a part of a job waits for the order to end after one of its PEs could not go on.
    static constexpr std::chrono::milliseconds order_limit{3000};
    // How long the parts of a job may take to end. Each gives its PEs their grace.
    static constexpr std::chrono::milliseconds part_grace{1500};

    // Without `limit` the job may run for ever.
    JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit,
             Scope scope = Scope::job);

    void pe_started() { ++started_; }
    // `text` describes the end for a person; it is shown if this is the first failure.
    Commands pe_ended(const ExitRecord& end, const std::string& text, Clock::time_point now);
    // A PE could not be started, or the launcher lost its means: ends the job with `status`.
    Commands failed(int status, const std::string& message);
    // A PE called npushmem_global_exit: the job ends with its status, which may be 0. Or it cannot go on, often because
    // of another's end, which it may have seen before the launcher: then the job ends once that end has been searched
    // for. The end of a PE that has said that it cannot go on is no cause.
    Commands exit_requested(const ExitRequest& request, Clock::time_point now);
    // For Scope::job: every end of a PE that another PE can have noticed before the order to look has been told.
    void exits_flushed(Clock::time_point now);

    // These are for Scope::hosts. `host` is an index.
    // A PE of the host cannot go on. The end of that part of the job is no cause from then on; its outcome is.
    Commands exit_requested_on_host(const ExitRequest& request, int host, Clock::time_point now);
    // The host has reported every end up to the order to look. When all hosts have, or have ended, the cause is known
    // or no host has it. A host that does not answer within look_limit is not waited for.
    void looked_on_host(int host, Clock::time_point now);
    // `part` names the part of the job on the host for a person.
    Commands outcome_on_host(const Outcome& outcome, int host, const std::string& part, Clock::time_point now);
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

    // A PE that cannot go on, or a part of the job in which a PE has exited with a status.
    struct Held {
        int process;          // the index of the process started here
        ExitRequest request;  // of the PE, if outcome.exit is empty
        Outcome outcome;
        std::string part;  // names the part for a person
    };

    Commands hold(const Held& held, Clock::time_point now);
    void has_reported_ends(int host, Clock::time_point now);
    [[nodiscard]] bool all_hosts_have_reported() const;
    [[nodiscard]] const Held& likely_cause() const;
    Commands end_as_held(Clock::time_point now);
    Commands end_as_part(const Held& held, Clock::time_point now);
    Commands end_job(int status, std::string message, Clock::time_point now);
    [[nodiscard]] bool has_reported_failure(const ExitRecord& end) const;
    Commands end_with(const ExitRequest& request, Clock::time_point now);
    Commands close_job();
    [[nodiscard]] std::string pes(int count) const;
    [[nodiscard]] std::string running_pes() const { return pes(running()); }

    int npes_;
    Scope scope_;
    int started_ = 0;
    int ended_ = 0;
    int interruptions_ = 0;  // INT and TERM that the launcher got
    Phase phase_ = Phase::running;
    std::vector<Held> deferred_failures_;  // until the cause has been looked for
    std::set<int> ended_processes_;
    std::set<int> hosts_reported_;  // that have no end left to report: they have looked, or have ended
    std::optional<int> status_;
    std::optional<std::chrono::milliseconds> limit_;
    std::optional<Clock::time_point> deadline_;
    std::optional<Clock::time_point> cause_deadline_;  // no cause was found yet for what was held
};

}  // namespace npushmem::run
