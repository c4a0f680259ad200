// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/remote_launch.hpp"

namespace npushmem::run {
namespace {

std::string count_of_running(Scope scope, int count) {
    const char* const noun = scope == Scope::agents ? "host agent" : "PE";
    return count == 1 ? fmt::format("running {}", noun) : fmt::format("{} running {}s", count, noun);
}

}  // namespace

bool CauseSearch::add(const DeferredFailure& failure) {
    failures_.push_back(failure);
    return failures_.size() == 1;
}

bool CauseSearch::contains(int process) const {
    return std::ranges::any_of(failures_, [&](const DeferredFailure& failure) { return failure.process == process; });
}

const DeferredFailure& CauseSearch::likely_cause() const {
    const auto exit =
        std::ranges::find_if(failures_, [](const DeferredFailure& failure) { return !failure.outcome.exit.empty(); });
    return exit == failures_.end() ? failures_.front() : *exit;
}

void CauseSearch::exits_flushed(Clock::time_point now) {
    if (stopped_ || failures_.empty()) return;
    const bool is_exit = !likely_cause().outcome.exit.empty();
    deadline_ = is_exit ? now : now + timeout;
}

void CauseSearch::exits_flushed_on_host(int host, Clock::time_point now) {
    const bool is_new = hosts_reported_.insert(host).second;
    if (is_new && all_hosts_have_reported()) exits_flushed(now);
}

void CauseSearch::stop() {
    stopped_ = true;
    deadline_.reset();
}

JobState::JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit, Scope scope,
                   bool survives_deaths)
    : npes_(npes), scope_(scope), survives_deaths_(survives_deaths), cause_search_(npes), limit_(limit) {
    if (limit_) deadline_ = start + *limit_;
}

Commands JobState::pe_ended(const ExitRecord& end, const std::string& text, Clock::time_point now) {
    ++ended_;
    ended_processes_.insert(end.pe);
    if (phase_ == Phase::closing) return {};
    Commands commands;
    const bool is_cause = end.failed() && phase_ == Phase::running && !cause_search_.contains(end.pe);
    if (is_cause && survives_deaths_) {
        commands = survive(end, text);
    } else if (is_cause) {
        const std::string rest = running() > 0 ? fmt::format("; ending the other {}", running_pes()) : "";
        commands = end_job(exit_code_of(end), text + rest, now);
        if (scope_ == Scope::host && end.termination == TerminationKind::exited) {
            commands.outcome->exit = text + rest;
            commands.messages = {};
        }
    }
    if (scope_ == Scope::agents) cause_search_.exits_flushed_on_host(end.pe, now);
    if (ended_ < npes_) return commands;
    if (phase_ == Phase::running && !cause_search_.empty()) {
        Commands failure = end_for_deferred_failure(now);
        commands.signals = failure.signals;
        // The job's launcher has received the requests of the host agent, and names the PE.
        if (scope_ != Scope::host) {
            std::ranges::move(failure.messages, std::back_inserter(commands.messages));
            commands.outcome = failure.outcome;
        }
    }
    commands.close = close_job().close;
    return commands;
}

// The end of a host agent only repeats what was reported about its PEs.
Commands JobState::survive(const ExitRecord& end, const std::string& text) {
    if (status_of_dead_ == 0) status_of_dead_ = exit_code_of(end);
    if (scope_ == Scope::agents && end.termination == TerminationKind::exited) return {};
    const char* const rest = running() > 0 ? "; the job goes on (NPUSHMEM_ON_PEER_DEATH=survive)" : "";
    Commands commands;
    commands.messages = {text + rest};
    // The job's launcher shows the line, and needs the status if a later failure ends the job.
    if (scope_ == Scope::host) commands.outcome = Outcome{exit_code_of(end), text + rest}, commands.messages = {};
    return commands;
}

Commands JobState::failed(int status, const std::string& message) {
    if (phase_ == Phase::closing) return {};
    if (!status_) status_ = status;
    Commands commands = close_job();
    commands.messages.push_back(message);
    commands.outcome = Outcome{*status_, {}};
    return commands;
}

Commands JobState::exit_requested(const ExitRequest& request, Clock::time_point now) {
    if (phase_ != Phase::running) return {};
    return request.failed ? defer({request.pe, request, {}, {}}, now) : end_with(request, now);
}

Commands JobState::exit_requested_on_host(const ExitRequest& request, int host, Clock::time_point now) {
    return phase_ == Phase::running ? defer({host, request, {}, {}}, now) : Commands{};
}

// One flush serves all failures. A host agent forwards each request and does not flush by itself.
Commands JobState::defer(const DeferredFailure& failure, Clock::time_point now) {
    const bool first = cause_search_.add(failure);
    Commands commands;
    if (scope_ == Scope::host) commands.forwarded = failure.request;
    if (!first) return commands;
    if (scope_ == Scope::job) commands.flush_exits = true;
    if (scope_ == Scope::agents) commands.signals = {flush_exits_signal};
    if (scope_ != Scope::job)
        cause_search_.wait_until(now + (scope_ == Scope::agents ? flush_timeout : stop_order_timeout));
    return commands;
}

void JobState::exits_flushed_on_host(int host, Clock::time_point now) {
    if (!cause_search_.empty()) cause_search_.exits_flushed_on_host(host, now);
}

Commands JobState::outcome_on_host(const Outcome& outcome, int host, const std::string& agent, Clock::time_point now) {
    if (phase_ != Phase::running) return {};
    if (survives_deaths_ && !outcome.exit.empty()) {
        if (status_of_dead_ == 0) status_of_dead_ = outcome.status;
        return {.messages = {outcome.exit}, .signals = {}, .close = false};
    }
    const DeferredFailure failure{host, {}, outcome, agent};
    if (outcome.exit.empty()) return end_for_agent(failure, now);
    Commands commands = defer(failure, now);
    if (cause_search_.all_hosts_have_reported()) exits_flushed(now);
    return commands;
}

std::optional<Clock::time_point> JobState::deadline() const {
    const auto cause = cause_search_.deadline();
    if (!cause || !deadline_) return cause ? cause : deadline_;
    return std::min(*cause, *deadline_);
}

int JobState::exit_status() const { return status_.value_or(ended_ == npes_ ? status_of_dead_ : exit_launcher_failed); }

Commands JobState::end_for_deferred_failure(Clock::time_point now) {
    const DeferredFailure failure = cause_search_.likely_cause();
    return failure.outcome.exit.empty() ? end_with(failure.request, now) : end_for_agent(failure, now);
}

Commands JobState::end_for_agent(const DeferredFailure& failure, Clock::time_point now) {
    const int others = running() - (ended_processes_.count(failure.process) == 0 ? 1 : 0);
    const std::string rest = others > 0 ? fmt::format("; ending the other {}", count_of_running(scope_, others)) : "";
    const auto& [status, exit] = failure.outcome;
    Commands commands = end_job(status, fmt::format("{} ends with status {}{}", failure.agent, status, rest), now);
    if (!exit.empty()) commands.messages.insert(commands.messages.begin(), exit);
    if (status == 0) commands.messages = {};
    return commands;
}

Commands JobState::end_with(const ExitRequest& request, Clock::time_point now) {
    // The status is that of the first PE that failed: here a death, which the others have survived or which failed
    // their start.
    const bool is_consequence = request.failed && status_of_dead_ != 0;
    Commands commands = end_job(is_consequence ? status_of_dead_ : request.status, {}, now);
    commands.messages = {};
    const std::string who = request.pe < 0 ? "a PE" : fmt::format("PE {}", request.pe);
    if (request.failed)
        commands.messages.push_back(fmt::format("{} cannot go on, as it has reported above{}", who,
                                                running() > 0 ? fmt::format("; ending the {}", running_pes()) : ""));
    else if (request.status != 0)
        commands.messages.push_back(fmt::format("{} ended the job by {}shmem_global_exit({})", who,
                                                request.openshmem ? "" : "npu", request.status));
    return commands;
}

Commands JobState::stop_requested(Clock::time_point now) {
    if (phase_ != Phase::running) return {};
    Commands commands = end_job(exit_signal_base + SIGTERM, {}, now);
    commands.messages = {};
    commands.outcome.reset();
    return commands;
}

Commands JobState::signalled(int signal) {
    if (phase_ == Phase::closing) return {};
    if (signal == SIGINT || signal == SIGTERM) ++interruptions_;
    if (interruptions_ < 2) return {.messages = {}, .signals = {signal}, .close = false};
    if (!status_) status_ = exit_signal_base + signal;
    Commands commands = close_job();
    commands.messages.push_back(fmt::format("{} again: killing the {}", signal_name(signal), running_pes()));
    return commands;
}

Commands JobState::expired(Clock::time_point now) {
    if (phase_ == Phase::closing) return {};
    if (phase_ == Phase::ending) return close_job();
    if (const auto cause = cause_search_.deadline(); cause && now >= *cause) return end_for_deferred_failure(now);
    const double limit = std::chrono::duration<double>(*limit_).count();
    return end_job(exit_timeout,
                   fmt::format("the time limit of {} s (--timeout) has passed; ending the {}", limit, running_pes()),
                   now);
}

// Before all PEs have started there is nothing to be gained from a grace: close at once.
Commands JobState::end_job(int status, std::string message, Clock::time_point now) {
    status_ = status;
    cause_search_.stop();
    const bool all_started = started_ == npes_;
    Commands commands;
    if (all_started) {
        phase_ = Phase::ending;
        deadline_ = now + (scope_ == Scope::agents ? host_grace : grace);
        // A stopped PE acts on TERM only once it continues.
        commands.signals = {scope_ == Scope::agents ? end_signal : SIGTERM, SIGCONT};
    } else {
        commands = close_job();
    }
    commands.messages.push_back(std::move(message));
    commands.outcome = Outcome{status, {}};
    return commands;
}

std::string JobState::running_pes() const { return count_of_running(scope_, running()); }

Commands JobState::close_job() {
    phase_ = Phase::closing;
    deadline_.reset();
    cause_search_.stop();
    return {.messages = {}, .signals = {}, .close = true};
}

}  // namespace npushmem::run
