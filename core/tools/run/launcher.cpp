// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/launcher.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/base/host_table.hpp"
#include "core/base/parse.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/placement.hpp"
#include "core/tools/run/processes.hpp"
#include "core/tools/run/record_relay.hpp"
#include "core/tools/run/remote_launch.hpp"

namespace npushmem::run {
namespace {

// The launcher waits this much longer than the supervisor's own limit.
constexpr std::chrono::milliseconds supervisor_margin{2000};
// While the terminal's input waits for the foreground, the launcher checks this often.
constexpr std::chrono::milliseconds foreground_interval{500};

int status_for_exec_error(int error) {
    if (error == ENOENT) return exit_not_found;
    return error == EACCES || error == ENOEXEC ? exit_not_executable : exit_launcher_failed;
}

Scope scope_of(const Options& options, const JobPlan& plan) {
    if (!plan.hosts.empty()) return Scope::agents;
    return options.job_npes > 0 ? Scope::host : Scope::job;
}

// The PEs report a wrong value.
bool survives_deaths(const JobPlan& plan) {
    const char* const text = plan.environment.value("NPUSHMEM_ON_PEER_DEATH");
    return text != nullptr && lowercase(trimmed(text)) == "survive";
}

}  // namespace

Launcher::Launcher(const Options& options, const JobPlan& plan, Resources resources)
    : options_(options),
      plan_(plan),
      resources_(std::move(resources)),
      messages_(options, plan),
      begin_(Clock::now()),
      state_(static_cast<int>(plan.pes.size()), begin_, options.timeout, scope_of(options, plan),
             survives_deaths(plan)),
      output_(options, plan, resources_.poller, resources_.log) {
    if (resources_.terminal_input.valid())
        input_.emplace(resources_.poller, STDIN_FILENO, std::move(resources_.terminal_input));
}

int Launcher::run() {
    watch();
    start_pes();
    while (!supervisor_ended_) poll_once();
    // These do what the supervisor does at its end; there is something to do only if it was killed or its limit passed.
    const bool limit_passed = supervisor_deadline_ && Clock::now() >= *supervisor_deadline_;
    (void)kill_descendants(limit_passed ? supervisor_margin : kill_limit(options_.npes));
    HostTable::sweep(nic_table_place());
    finish_output();
    return state_.exit_status() == 0 && output_.is_lost() ? exit_launcher_failed : state_.exit_status();
}

void Launcher::watch() {
    DispatchingPoller& poller = resources_.poller;
    for (const Status& status :
         {poller.add(resources_.supervisor.fd(), EPOLLIN, [this](std::uint32_t) { receive_from_supervisor(); }),
          poller.add(resources_.supervisor_process.get(), EPOLLIN, [this](std::uint32_t) { reap_supervisor(); }),
          poller.add(resources_.signals.get(), EPOLLIN, [this](std::uint32_t) { handle_signal(); }),
          poller.add(resources_.exit_requests.get(), EPOLLIN, [this](std::uint32_t) { read_exit_requests(); })})
        if (!status.ok()) execute(state_.failed(exit_launcher_failed, status.message()));
}

void Launcher::start_pes() {
    std::string late;
    if (options_.job_npes == 0 && needs_unique_id(plan_.environment)) {
        auto opened = Rendezvous::open(plan_.environment);
        if (!opened.ok()) return execute(state_.failed(exit_launcher_failed, opened.status().message()));
        rendezvous_ = std::move(opened).value();
        late = "NPUSHMEM_UNIQUEID=" + rendezvous_->unique_id() + '\0';
    }
    if (!state_.closing()) (void)resources_.supervisor.send(Message{}, late);
}

// One round of the event loop.
void Launcher::poll_once() {
    if (input_) input_->resume_in_foreground();
    resources_.poller.run_once(time_to_wait());
    const auto now = Clock::now();
    if (state_.deadline() && now >= *state_.deadline()) execute(state_.expired(now));
    if (supervisor_deadline_ && now >= *supervisor_deadline_) {
        report(fmt::format(
            "some processes of the job do not end although they were killed; see the children of process {}",
            resources_.supervisor_pid));
        supervisor_ended_ = true;
    }
    output_.show(now);
}

std::optional<std::chrono::milliseconds> Launcher::time_to_wait() const {
    std::optional<Clock::time_point> next = supervisor_deadline_ ? supervisor_deadline_ : state_.deadline();
    if (input_ && input_->waiting_for_foreground()) {
        const auto check = Clock::now() + foreground_interval;
        next = next ? std::min(*next, check) : check;
    }
    if (const auto due = output_.deadline()) next = next ? std::min(*next, *due) : due;
    if (!next) return std::nullopt;
    // Rounded up, so that the launcher does not wake before the deadline.
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(*next - Clock::now(), Clock::duration::zero()));
}

void Launcher::receive_from_supervisor() {
    while (!state_.closing()) {
        Received received = resources_.supervisor.receive(false);
        if (received.state == Received::State::nothing) return;
        // The supervisor has ended; reap_supervisor() reports how.
        if (received.state == Received::State::closed) return resources_.poller.remove(resources_.supervisor.fd());
        handle_message(std::move(received));
    }
}

void Launcher::handle_message(Received received) {
    const Message& message = received.message;
    if (message.kind == MessageKind::started) pe_started(message, std::move(received.descriptors));
    if (message.kind == MessageKind::start_failed) pe_not_started(message, received.payload);
    if (message.kind == MessageKind::ended) pe_ended(message);
    if (message.kind == MessageKind::exits_flushed) exits_flushed();
}

// The records of the ends were written earlier.
void Launcher::exits_flushed() {
    if (is_host_agent()) return handle_record(record_of_host(LauncherRecord::Kind::exits_flushed, {}));
    state_.exits_flushed(Clock::now());
}

void Launcher::pe_started(const Message& message, std::vector<FileDescriptor> output) {
    state_.pe_started();
    if (output_.tags_lines()) tag_output_of(message.pe, std::move(output));
    if (options_.verbose) report(messages_.started(message));
}

// Descriptors are lost when this process has no free descriptor.
void Launcher::tag_output_of(int pe, std::vector<FileDescriptor> output) {
    const Status added = output.size() == 2
                             ? output_.tag(plan_.numbering.of(pe), std::move(output[0]), std::move(output[1]))
                             : Status{Code::system, "this process has no free descriptor"};
    if (!added.ok()) execute(state_.failed(exit_launcher_failed, messages_.not_tagged(pe, added)));
}

void Launcher::pe_not_started(const Message& message, const std::string& attempt) {
    const bool by_exec = attempt == "execve";
    execute(state_.failed(by_exec ? status_for_exec_error(message.value) : exit_launcher_failed,
                          messages_.not_started(message, attempt)));
}

void Launcher::pe_ended(const Message& message) {
    read_exit_requests();  // a PE's request counts before its end
    const ExitRecord end{plan_.numbering.of(message.pe), message.pid, static_cast<TerminationKind>(message.termination),
                         message.value};
    const std::string text = messages_.ended(message.pe, end);
    const Commands commands = state_.pe_ended(end, text, Clock::now());
    if (commands.messages.empty()) report_if_verbose(text);
    execute(commands);
    if (!end.failed() || survives_deaths(plan_)) report_to_rendezvous(message, describe_termination(end));
}

// A failure ends the job; the others must not wait for a PE that exited with 0. A host agent reports to the job's
// launcher, which has the rendezvous. When a host agent has exited, all PEs of its host have exited.
void Launcher::report_to_rendezvous(const Message& message, const std::string& how) {
    if (state_.closing()) return;
    const bool local = plan_.hosts.empty();
    if (is_host_agent()) {
        const int pe = plan_.numbering.of(message.pe);
        return handle_record({LauncherRecord::Kind::ended,
                              pe,
                              {},
                              fmt::format("PE {} (pid {}, host {}) {}", pe, message.pid, messages_.host(), how)});
    }
    if (!rendezvous_) return;
    const auto index = static_cast<std::size_t>(message.pe);
    const auto hosts = static_cast<int>(plan_.hosts.size());
    const HostPes pes = local ? HostPes{{plan_.numbering.of(message.pe), 1}, 1}
                              : pes_of_host(message.pe, hosts, options_.npes, options_.map_by);
    const std::string host =
        local ? fmt::format("pid {}, host {}", message.pid, messages_.host()) : "host " + plan_.hosts[index];
    for (int i = 0; i < pes.count; ++i) {
        const int pe = pes.numbering.of(i);
        rendezvous_->pe_ended(pe, options_.npes, fmt::format("PE {} ({}) {}", pe, host, how));
    }
}

// The channel may still be open: a PE that is being started shares the supervisor's descriptors.
void Launcher::reap_supervisor() {
    receive_from_supervisor();  // messages that it sent before it ended
    siginfo_t info{};
    (void)::waitid(P_PID, static_cast<id_t>(resources_.supervisor_pid), &info, WEXITED);
    resources_.poller.remove(resources_.supervisor_process.get());
    supervisor_ended_ = true;
    const ExitRecord end{-1, resources_.supervisor_pid, termination_kind(info.si_code), info.si_status};
    if (!state_.closing())
        execute(state_.failed(exit_launcher_failed,
                              fmt::format("the job's supervisor process (pid {}) {}, and its PEs ended with it",
                                          resources_.supervisor_pid, describe_termination(end))));
}

void Launcher::handle_signal() {
    signalfd_siginfo info{};
    if (::read(resources_.signals.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == end_signal) return execute(state_.stop_requested(Clock::now()));
    if (signal == flush_exits_signal) return request_exit_flush();
    if (supervisor_ended_ && (signal == SIGINT || signal == SIGTERM)) output_.abandon();
    report_if_verbose(fmt::format("forwarding {} to {} {}s", signal_name(signal), state_.running(),
                                  plan_.hosts.empty() ? "PE" : "host agent"));
    execute(state_.signalled(signal));
    if (signal == SIGTSTP) (void)::kill(::getpid(), SIGSTOP);  // the shell sees the job stop; CONT undoes both
}

void Launcher::read_exit_requests() {
    std::array<char, 4096> bytes;
    ssize_t length = 0;
    while ((length = ::read(resources_.exit_requests.get(), bytes.data(), bytes.size())) > 0) {
        read_log();  // a PE reports before it asks for the job's end
        for (const auto& request : exit_requests_.take({bytes.data(), static_cast<std::size_t>(length)}))
            execute(state_.exit_requested(request, Clock::now()));
    }
    read_log();  // a PE may have been killed before it woke this process
    // End of file: all processes that could write have ended.
    if (length == 0) resources_.poller.remove(resources_.exit_requests.get());
}

void Launcher::read_log() {
    for (const auto& record : resources_.log.read()) handle_record(record);
}

// A host agent sends all records to the job's launcher.
void Launcher::handle_record(const LauncherRecord& record) {
    if (is_host_agent()) {
        output_.add_frames(frames_of(record, options_.record_mark));
    } else if (record.kind == LauncherRecord::Kind::ended) {
        if (rendezvous_) rendezvous_->pe_ended(record.pe, options_.npes, record.text);
    } else if (record.kind == LauncherRecord::Kind::failed_calls) {
        const auto calls = parse_integer(record.text, 1, std::numeric_limits<std::int32_t>::max());
        failed_calls_[record.pe] += calls.ok() ? calls.value() : 1;
    } else {
        handle_record_of_host(record);
        output_.add(record, Clock::now());
    }
}

// Handles the records that a host agent makes by record_of_host, and ignores others.
void Launcher::handle_record_of_host(const LauncherRecord& record) {
    const auto hosts = static_cast<int>(plan_.hosts.size());
    if (hosts == 0 || record.pe < 0 || record.pe >= options_.npes) return;
    const int host = emulated_host_of(record.pe, options_.npes, hosts, options_.map_by);
    const auto now = Clock::now();
    if (record.kind == LauncherRecord::Kind::exits_flushed) state_.exits_flushed_on_host(host, now);
    if (record.kind == LauncherRecord::Kind::request)
        if (const auto request = parse_exit_request(record.text))
            execute(state_.exit_requested_on_host(*request, host, now));
    if (record.kind == LauncherRecord::Kind::outcome)
        if (const auto outcome = parse_outcome(record.text))
            execute(state_.outcome_on_host(*outcome, host, messages_.name_of(host), now));
}

LauncherRecord Launcher::record_of_host(LauncherRecord::Kind kind, const std::string& text) const {
    return {kind, plan_.numbering.first, {}, text};
}

void Launcher::report_to_job_launcher(const Commands& commands) {
    if (commands.forwarded) handle_record(record_of_host(LauncherRecord::Kind::request, line_of(*commands.forwarded)));
    if (commands.outcome) handle_record(record_of_host(LauncherRecord::Kind::outcome, text_of(*commands.outcome)));
}

// A job fails if calls failed and the program cannot know that.
void Launcher::fail_for_failed_calls() {
    for (const auto& [index, calls] : resources_.log.failed_calls()) failed_calls_[plan_.numbering.of(index)] += calls;
    if (failed_calls_.empty() || state_.exit_status() != 0) return;
    state_.calls_failed(is_host_agent() ? exit_calls_failed : EXIT_FAILURE);
    if (!is_host_agent())
        return report(
            fmt::format("{}, as reported above, and the program did not ask for these failures: the job has "
                        "failed (NPUSHMEM_ON_ERROR=report only reports them)",
                        describe_failed_calls(failed_calls_)));
    for (const auto& [pe, calls] : failed_calls_)
        handle_record({LauncherRecord::Kind::failed_calls, pe, {}, std::to_string(calls)});
}

void Launcher::execute(const Commands& commands) {
    for (const auto& message : commands.messages) report(message);
    if (is_host_agent()) report_to_job_launcher(commands);
    for (const int signal : commands.signals)
        (void)resources_.supervisor.send(Message{MessageKind::signal, -1, -1, signal, 0});
    if (commands.flush_exits) request_exit_flush();
    if (commands.close) close_job();
}

void Launcher::request_exit_flush() {
    (void)resources_.supervisor.send(Message{MessageKind::flush_exits, -1, -1, 0, 0});
}

// The supervisor ends the job when the channel ends.
void Launcher::close_job() {
    resources_.poller.remove(resources_.supervisor.fd());
    resources_.log.claim_for_launcher();
    resources_.supervisor.close();
    if (input_) input_->close();
    supervisor_deadline_ = Clock::now() + kill_limit(options_.npes) + supervisor_margin;
}

void Launcher::finish_output() {
    supervisor_deadline_.reset();
    output_.finish_tags();
    read_log();
    fail_for_failed_calls();
    const std::chrono::duration<double> took = Clock::now() - begin_;
    report_if_verbose(messages_.job_ended(took.count(), state_.exit_status()));
    output_.show_all();
    const int error = output_.output_error();
    if (error == 0) return;
    report(fmt::format("output of the job is lost: cannot write to standard output: {}", std::strerror(error)));
    output_.show_all();
}

// Shows the message after the reports of PEs.
void Launcher::report(const std::string& message) { handle_record({LauncherRecord::Kind::message, -1, {}, message}); }

void Launcher::report_if_verbose(const std::string& message) {
    if (options_.verbose) report(message);
}

}  // namespace npushmem::run
