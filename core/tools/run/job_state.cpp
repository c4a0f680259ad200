#include "core/tools/run/job_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {

JobState::JobState(int npes, Clock::time_point start, std::optional<std::chrono::milliseconds> limit, const char* noun,
                   int ending_signal)
    : npes_(npes), noun_(noun), ending_signal_(ending_signal), limit_(limit) {
    if (limit_) deadline_ = start + *limit_;
}

Commands JobState::pe_ended(const ExitRecord& end, const std::string& text, Clock::time_point now) {
    ++ended_;
    if (phase_ == Phase::closing) return {};
    Commands commands;
    if (end.failed() && phase_ == Phase::running && !has_reported_failure(end)) {
        const std::string rest = running() > 0 ? fmt::format("; ending the other {}", running_pes()) : "";
        commands = end_job(exit_code_of(end), text + rest, now);
    }
    if (ended_ < npes_) return commands;
    if (phase_ == Phase::running && !deferred_failures_.empty()) commands = end_with(deferred_failures_.front(), now);
    commands.close = close_job().close;
    return commands;
}

Commands JobState::failed(int status, const std::string& message) {
    if (phase_ == Phase::closing) return {};
    if (!status_) status_ = status;
    Commands commands = close_job();
    commands.messages.push_back(message);
    return commands;
}

Commands JobState::exit_requested(const ExitRequest& request, Clock::time_point now) {
    if (phase_ != Phase::running) return {};
    if (!request.failed) return end_with(request, now);
    Commands commands;
    commands.flush_exits = deferred_failures_.empty();
    deferred_failures_.push_back(request);
    return commands;
}

void JobState::exits_flushed(Clock::time_point now) {
    if (phase_ == Phase::running && !deferred_failures_.empty()) cause_deadline_ = now + cause_timeout;
}

std::optional<Clock::time_point> JobState::deadline() const {
    if (!cause_deadline_ || !deadline_) return cause_deadline_ ? cause_deadline_ : deadline_;
    return std::min(*cause_deadline_, *deadline_);
}

int JobState::exit_status() const { return status_.value_or(ended_ == npes_ ? 0 : exit_launcher_failed); }

bool JobState::has_reported_failure(const ExitRecord& end) const {
    return std::any_of(deferred_failures_.begin(), deferred_failures_.end(),
                       [&](const ExitRequest& said) { return said.pe == end.pe; });
}

Commands JobState::end_with(const ExitRequest& request, Clock::time_point now) {
    Commands commands = end_job(request.status, {}, now);
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
    if (cause_deadline_ && now >= *cause_deadline_) return end_with(deferred_failures_.front(), now);
    const double limit = std::chrono::duration<double>(*limit_).count();
    return end_job(exit_timeout,
                   fmt::format("the time limit of {} s (--timeout) has passed; ending the {}", limit, running_pes()),
                   now);
}

// Before all PEs have started there is nothing to be gained from a grace: close at once.
Commands JobState::end_job(int status, std::string message, Clock::time_point now) {
    status_ = status;
    cause_deadline_.reset();
    const bool all_started = started_ == npes_;
    Commands commands;
    if (all_started) {
        phase_ = Phase::ending;
        deadline_ = now + grace;
        commands.signals = {ending_signal_, SIGCONT};  // a stopped PE acts on TERM only once it continues
    } else {
        commands = close_job();
    }
    commands.messages.push_back(std::move(message));
    return commands;
}

std::string JobState::running_pes() const {
    return running() == 1 ? fmt::format("running {}", noun_) : fmt::format("{} running {}s", running(), noun_);
}

Commands JobState::close_job() {
    phase_ = Phase::closing;
    deadline_.reset();
    cause_deadline_.reset();
    return {.messages = {}, .signals = {}, .close = true};
}

}  // namespace npushmem::run
