// SPDX-License-Identifier: BSD-3-Clause
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

namespace npushmem::run {

using Clock = std::chrono::steady_clock;

// The launcher executes these in this order.
struct Commands {
    std::vector<std::string> messages;
    std::vector<int> signals;  // to every PE that runs
    bool close = false;        // kill all processes of the job
    bool flush_exits = false;  // ask the supervisor to report all ends up to now, then call JobState::exits_flushed
    // A host agent's launcher sends both to the job's launcher.
    std::optional<ExitRequest> forwarded = std::nullopt;
    std::optional<Outcome> outcome = std::nullopt;
};

// The processes that a launcher has started.
enum class Scope {
    job,     // all PEs of a job
    agents,  // one agent client for each host of a job
    host,    // the PEs of one host, by its host agent; the job's launcher decides which PE is named
};

// A PE that cannot go on, or a host on which a PE has exited with a status.
struct DeferredFailure {
    int process;          // the index of the process started here
    ExitRequest request;  // of the PE, if outcome.exit is empty
    Outcome outcome;
    std::string agent;  // names the host agent for a person
};

// Searches the failures of a job for the one that caused the others. A failure waits here until all ends that may be
// its cause have been reported, or until a deadline.
class CauseSearch {
public:
    // After all ends were reported, the end of the PE that is the cause may come this much later: a PE that is a shell
    // ends after its program.
    static constexpr std::chrono::milliseconds timeout{250};

    explicit CauseSearch(int hosts) : hosts_(hosts) {}

    // Returns true for the first failure, with which the search begins.
    bool add(const DeferredFailure& failure);
    [[nodiscard]] bool empty() const { return failures_.empty(); }
    // Has the process, by its index, a failure here?
    [[nodiscard]] bool contains(int process) const;
    // The exit of a PE counts more than that another PE cannot go on. Not for an empty search.
    [[nodiscard]] const DeferredFailure& likely_cause() const;

    // All ends up to the first failure have been reported.
    void exits_flushed(Clock::time_point now);
    // The same for one host of the job; the host may also have ended.
    void exits_flushed_on_host(int host, Clock::time_point now);
    [[nodiscard]] bool all_hosts_have_reported() const { return static_cast<int>(hosts_reported_.size()) == hosts_; }

    void wait_until(Clock::time_point deadline) { deadline_ = deadline; }
    // The job ends. From now on there is no deadline.
    void stop();
    // When the likely cause counts as the cause; none: the search waits for reports, or has not begun.
    [[nodiscard]] std::optional<Clock::time_point> deadline() const { return deadline_; }

private:
    int hosts_;
    bool stopped_ = false;
    std::vector<DeferredFailure> failures_;
    std::set<int> hosts_reported_;
    std::optional<Clock::time_point> deadline_;
};

// One class, although it has more than twenty methods: most of them are the events of one state machine, one method
// each, and all of them read or change its phase.
class JobState {
public:
    // PEs have this long to end by themselves after TERM.
    static constexpr std::chrono::milliseconds grace{400};
    // Host agents have this long to report the ends of their PEs after a PE of the job could not go on.
    static constexpr std::chrono::milliseconds flush_timeout{2000};
    // A host agent waits this long for the order to end after one of its PEs could not go on.
    static constexpr std::chrono::milliseconds stop_order_timeout{3000};
    // Host agents have this long to end. Each grants its PEs `grace`.
    static constexpr std::chrono::milliseconds host_grace{1500};

    // Without `limit` the job's time is not limited. `survives_deaths`: a PE that ends with a failure does not end the
    // job, whose status is then that of the first such PE.
    JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit,
             Scope scope = Scope::job, bool survives_deaths = false);

    void pe_started() { ++started_; }
    // `text` describes the end for a person; the launcher shows it if this is the first failure.
    Commands pe_ended(const ExitRecord& end, const std::string& text, Clock::time_point now);
    // A PE could not be started, or the launcher cannot continue: ends the job with `status`.
    Commands failed(int status, const std::string& message);
    // A PE called npushmem_global_exit: the job ends with its status, which may be 0. Or the PE cannot go on, often
    // because another PE has ended, and the launcher may not know of that end yet: the job ends once the launcher has
    // searched for it. The end of a PE that has reported that it cannot go on is never the cause.
    Commands exit_requested(const ExitRequest& request, Clock::time_point now);
    // For Scope::job: the supervisor has reported every end whose effects another PE can have observed before
    // flush_exits.
    void exits_flushed(Clock::time_point now) { cause_search_.exits_flushed(now); }

    // The next three are for Scope::agents. `host` is an index.
    // A PE of the host cannot go on. From then on the end of the host's agent is not a cause; its outcome is.
    Commands exit_requested_on_host(const ExitRequest& request, int host, Clock::time_point now);
    // The host agent has reported every end up to flush_exits_signal. When all agents have, or have ended, the cause is
    // known or no host has it. The launcher waits flush_timeout for an agent that does not answer.
    void exits_flushed_on_host(int host, Clock::time_point now);
    // `agent` names the host agent for a person. In a job that survives deaths, an outcome with an exit is such a
    // death.
    Commands outcome_on_host(const Outcome& outcome, int host, const std::string& agent, Clock::time_point now);
    // A job that would have succeeded ends with `status`, because of calls that failed.
    void calls_failed(int status) { status_ = status; }
    // The job's launcher, which has reported why, orders the PEs of this host to end.
    Commands stop_requested(Clock::time_point now);
    // The launcher received a signal and forwards it.
    Commands signalled(int signal);
    // Call this when `deadline` has passed.
    Commands expired(Clock::time_point now);

    [[nodiscard]] std::optional<Clock::time_point> deadline() const;
    [[nodiscard]] bool closing() const { return phase_ == Phase::closing; }
    // As long as the outcome is unknown, the job has failed.
    [[nodiscard]] int exit_status() const;
    [[nodiscard]] int running() const { return started_ - ended_; }

private:
    enum class Phase { running, ending, closing };

    Commands survive(const ExitRecord& end, const std::string& text);
    Commands defer(const DeferredFailure& failure, Clock::time_point now);
    Commands end_for_deferred_failure(Clock::time_point now);
    Commands end_for_agent(const DeferredFailure& failure, Clock::time_point now);
    Commands end_job(int status, std::string message, Clock::time_point now);
    Commands end_with(const ExitRequest& request, Clock::time_point now);
    Commands close_job();
    [[nodiscard]] std::string running_pes() const;

    int npes_;
    Scope scope_;
    bool survives_deaths_;
    int status_of_dead_ = 0;  // of the first one; 0: none
    int started_ = 0;
    int ended_ = 0;
    int interruptions_ = 0;  // INT and TERM that the launcher received
    Phase phase_ = Phase::running;
    CauseSearch cause_search_;
    std::set<int> ended_processes_;
    std::optional<int> status_;
    std::optional<std::chrono::milliseconds> limit_;
    std::optional<Clock::time_point> deadline_;
};

}  // namespace npushmem::run
