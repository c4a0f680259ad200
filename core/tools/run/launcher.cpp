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
#include <cstring>

#include "core/base/os_facts.hpp"
#include "core/tools/run/binding_plan.hpp"
#include "core/tools/run/descendants.hpp"
#include "core/tools/run/exit_codes.hpp"
#include "core/tools/run/job_preparation.hpp"

namespace npushmem::run {
namespace {

// How long the keeper may take to kill and reap all that is left; its own limit is shorter.
constexpr std::chrono::milliseconds keeper_limit{5000};
// How often the foreground is looked at while a terminal's input waits for it.
constexpr std::chrono::milliseconds foreground_interval{500};

int status_for_exec_error(int error) {
    if (error == ENOENT) return exit_not_found;
    return error == EACCES || error == ENOEXEC ? exit_not_executable : exit_launcher_failed;
}

std::string remedy_for(int error) {
    if (error == ENOEXEC) return "; is it a script without a #! line, or a program for another machine?";
    if (error == ENOENT) return "; the interpreter that it names does not exist";
    if (error == EAGAIN || error == ENOMEM)
        return "; see the limits of processes (ulimit -u, pids of the control group) and of memory";
    if (error == EMFILE) return "; see the limit of open files (ulimit -n)";
    return "";
}

}  // namespace

Launcher::Launcher(const Options& options, const JobPlan& plan, Parts parts)
    : options_(options),
      plan_(plan),
      parts_(std::move(parts)),
      host_(host_name()),
      begin_(Clock::now()),
      state_(static_cast<int>(plan.pes.size()), begin_, options.timeout),
      output_(STDOUT_FILENO),
      errors_(STDERR_FILENO) {
    if (plan.pipe_output) tagged_.emplace(parts_.poller, output_, errors_);
    if (parts_.terminal_input.open()) input_.emplace(parts_.poller, STDIN_FILENO, std::move(parts_.terminal_input));
}

int Launcher::run() {
    watch();
    start_pes();
    while (!keeper_gone_) turn();
    (void)kill_descendants(keeper_limit);  // only after the keeper was killed there are any
    finish_output();
    return state_.exit_status();
}

void Launcher::watch() {
    Poller& poller = parts_.poller;
    for (const Status& status :
         {poller.add(parts_.keeper.fd(), EPOLLIN, [this](std::uint32_t) { hear_keeper(); }),
          poller.add(parts_.keeper_process.get(), EPOLLIN, [this](std::uint32_t) { reap_keeper(); }),
          poller.add(parts_.signals.get(), EPOLLIN, [this](std::uint32_t) { take_signal(); }),
          poller.add(parts_.exit_requests.get(), EPOLLIN, [this](std::uint32_t) { take_exit_requests(); })})
        if (!status.ok()) carry_out(state_.failed(exit_launcher_failed, status.message()));
}

void Launcher::start_pes() {
    std::string late;
    if (options_.job_npes == 0 && needs_unique_id(plan_.environment)) {
        auto opened = Rendezvous::open(plan_.environment);
        if (!opened.ok()) return carry_out(state_.failed(exit_launcher_failed, opened.status().message()));
        rendezvous_ = std::move(opened).value();
        late = "NPUSHMEM_UNIQUEID=" + rendezvous_->unique_id() + '\0';
    }
    if (!state_.closing()) (void)parts_.keeper.send(Message{}, late);
}

// One round of the event loop.
void Launcher::turn() {
    if (input_) input_->attend();
    parts_.poller.run_once(time_to_wait());
    const auto now = Clock::now();
    if (state_.deadline() && now >= *state_.deadline()) carry_out(state_.expired(now));
    if (keeper_deadline_ && now >= *keeper_deadline_) {
        say(fmt::format(
            "some processes of the job do not end although they were killed; see the children of process {}",
            parts_.keeper_pid));
        keeper_gone_ = true;
    }
    pump();
}

std::optional<std::chrono::milliseconds> Launcher::time_to_wait() const {
    std::optional<Clock::time_point> next = keeper_deadline_ ? keeper_deadline_ : state_.deadline();
    if (input_ && input_->waiting_for_foreground()) {
        const auto look = Clock::now() + foreground_interval;
        next = next ? std::min(*next, look) : look;
    }
    if (!next) return std::nullopt;
    // Rounded up: waking before the deadline would be a turn for nothing.
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(*next - Clock::now(), Clock::duration::zero()));
}

void Launcher::hear_keeper() {
    while (!state_.closing()) {
        Received received = parts_.keeper.receive(false);
        if (received.state == Received::State::nothing) return;
        if (received.state == Received::State::closed) return keeper_lost();
        take(std::move(received));
    }
}

void Launcher::take(Received received) {
    const Message& message = received.message;
    if (message.kind == MessageKind::started) pe_started(message, std::move(received.descriptors));
    if (message.kind == MessageKind::start_failed) pe_not_started(message, received.payload);
    if (message.kind == MessageKind::ended) pe_ended(message);
    if (message.kind == MessageKind::looked) carry_out(state_.looked(Clock::now()));
}

void Launcher::pe_started(const Message& message, std::vector<Fd> output) {
    state_.pe_started();
    if (tagged_) tag_output_of(message.pe, std::move(output));
    if (!options_.verbose) return;
    const PePlan& place = plan_.pes[static_cast<std::size_t>(message.pe)];
    const std::string host = place.emulated_host < 0 ? "" : fmt::format(", emulated host {}", place.emulated_host);
    const std::string cpus = place.cpus.empty() ? "not bound" : "CPUs " + format_cpus(place.cpus);
    say(fmt::format("{} started: pid {}, host {}{}, {}", name_of(message.pe), message.pid, host_, host, cpus));
}

// Descriptors that found no room in this process are lost on their way.
void Launcher::tag_output_of(int pe, std::vector<Fd> output) {
    const Status added = output.size() == 2
                             ? tagged_->add(plan_.numbering.of(pe), std::move(output[0]), std::move(output[1]))
                             : Status{Code::system, "no descriptor is left for it"};
    if (!added.ok())
        carry_out(state_.failed(exit_launcher_failed, fmt::format("the output of PE {} cannot be tagged: {}{}", pe,
                                                                  added.message(), remedy_for(EMFILE))));
}

void Launcher::pe_not_started(const Message& message, const std::string& attempt) {
    const bool by_exec = attempt == "execve";
    carry_out(state_.failed(
        by_exec ? status_for_exec_error(message.value) : exit_launcher_failed,
        fmt::format("{} of {} cannot be started: {} of '{}' failed: {}{}", name_of(message.pe), options_.npes, attempt,
                    plan_.program, std::strerror(message.value), remedy_for(message.value))));
}

void Launcher::pe_ended(const Message& message) {
    take_exit_requests();  // what a PE asked for before it ended counts first
    const PeEnd end{plan_.numbering.of(message.pe), message.pid, static_cast<HowEnded>(message.how), message.value};
    const std::string text = plan_.hosts.empty() ? describe(end, host_, emulated_host_of_pe(message.pe))
                                                 : fmt::format("{} {}", name_of(message.pe), ending_of(end));
    const Orders orders = state_.pe_ended(end, text, Clock::now());
    if (orders.messages.empty()) say_if_verbose(text);
    carry_out(orders);
}

void Launcher::keeper_lost() {
    carry_out(state_.failed(
        exit_launcher_failed,
        fmt::format("the job's keeper process (pid {}) is gone, and its PEs with it", parts_.keeper_pid)));
}

void Launcher::reap_keeper() {
    hear_keeper();  // what it said before it ended
    (void)::waitpid(parts_.keeper_pid, nullptr, 0);
    parts_.poller.remove(parts_.keeper_process.get());
    keeper_gone_ = true;
}

void Launcher::take_signal() {
    signalfd_siginfo info{};
    if (::read(parts_.signals.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (keeper_gone_ && (signal == SIGINT || signal == SIGTERM)) output_abandoned_ = true;
    say_if_verbose(fmt::format("forwarding {} to {} PEs", signal_name(signal), state_.running()));
    carry_out(state_.signalled(signal));
    if (signal == SIGTSTP) (void)::kill(::getpid(), SIGSTOP);  // the shell sees the job stop; CONT undoes both
}

void Launcher::take_exit_requests() {
    std::array<char, 4096> bytes;
    const auto length = ::read(parts_.exit_requests.get(), bytes.data(), bytes.size());
    // The end: no process that could write is left.
    if (length == 0) return parts_.poller.remove(parts_.exit_requests.get());
    if (length < 0) return;
    for (const auto& request : exit_requests_.take({bytes.data(), static_cast<std::size_t>(length)}))
        carry_out(state_.exit_requested(request, Clock::now()));
}

void Launcher::carry_out(const Orders& orders) {
    for (const auto& message : orders.messages) say(message);
    for (const int signal : orders.signals) (void)parts_.keeper.send(Message{MessageKind::signal, -1, -1, signal, 0});
    if (orders.look) (void)parts_.keeper.send(Message{MessageKind::look, -1, -1, 0, 0});
    if (orders.close) close_job();
}

// The end of the channel is what the keeper takes as the order to end everything.
void Launcher::close_job() {
    parts_.poller.remove(parts_.keeper.fd());
    parts_.keeper.close();
    if (input_) input_->close();
    keeper_deadline_ = Clock::now() + keeper_limit;
}

// The reader of our output may be slow; it is waited for as any program would, until INT or TERM.
void Launcher::finish_output() {
    keeper_deadline_.reset();
    if (tagged_) tagged_->finish();
    const std::chrono::duration<double> took = Clock::now() - begin_;
    say_if_verbose(fmt::format("the job of {} PEs took {:.3f} s; exit status {}", options_.npes, took.count(),
                               state_.exit_status()));
    pump();
    while (!output_abandoned_ && !(output_.idle() && errors_.idle())) {
        parts_.poller.run_once(std::nullopt);
        pump();
    }
}

void Launcher::pump() {
    pump(output_, output_watched_);
    pump(errors_, errors_watched_);
    if (tagged_) tagged_->resume();
}

void Launcher::pump(OutputSink& sink, bool& watched) {
    sink.flush();
    if (sink.idle() == !watched) return;
    if (watched)
        parts_.poller.remove(sink.fd());
    else
        watched = parts_.poller.add(sink.fd(), EPOLLOUT, [](std::uint32_t) {}).ok();
    if (sink.idle()) watched = false;
}

void Launcher::say(const std::string& message) {
    errors_.text().append("npushmem-run: ").append(message).push_back('\n');
}

void Launcher::say_if_verbose(const std::string& message) {
    if (options_.verbose) say(message);
}

std::string Launcher::name_of(int index) const {
    if (plan_.hosts.empty()) return fmt::format("PE {}", plan_.numbering.of(index));
    return fmt::format("the part of the job on host {}", plan_.hosts[static_cast<std::size_t>(index)]);
}

int Launcher::emulated_host_of_pe(int pe) const { return plan_.pes[static_cast<std::size_t>(pe)].emulated_host; }

}  // namespace npushmem::run
