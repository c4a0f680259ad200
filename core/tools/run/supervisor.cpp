// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/nic_assignment.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_log.hpp"
#include "core/tools/run/job_streams.hpp"
#include "core/tools/run/processes.hpp"

namespace npushmem::run {
namespace {

// A PE can be reaped this long after its files were closed, at most.
constexpr std::chrono::milliseconds exit_limit{1000};

// A CPU set of any size, for sched_setaffinity.
class CpuMask {
public:
    explicit CpuMask(const std::vector<int>& cpus) {
        if (cpus.empty()) return;
        const int highest = *std::max_element(cpus.begin(), cpus.end());
        bytes_ = CPU_ALLOC_SIZE(highest + 1);
        words_.resize(bytes_ / sizeof(cpu_set_t) + 1);
        for (const int cpu : cpus)
            CPU_SET_S(static_cast<std::size_t>(cpu), words_.size() * sizeof(cpu_set_t), words_.data());
    }
    [[nodiscard]] const cpu_set_t* set() const { return words_.empty() ? nullptr : words_.data(); }
    [[nodiscard]] std::size_t bytes() const { return words_.size() * sizeof(cpu_set_t); }

private:
    std::size_t bytes_ = 0;
    std::vector<cpu_set_t> words_;
};

}  // namespace

Supervisor::Supervisor(JobPlan plan, Channel launcher, JobLog log, DispatchingPoller poller)
    : plan_(std::move(plan)),
      launcher_(std::move(launcher)),
      log_(std::move(log)),
      errors_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)),
      poller_(std::move(poller)) {
    if (const char* pipe = plan_.environment.value("NPUSHMEM_LAUNCHER_FD")) launcher_pipe_ = pipe;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    children_ = FileDescriptor(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    null_ = FileDescriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

int Supervisor::run() {
    sigset_t all;
    sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, nullptr);  // signals for the job go to the launcher
    (void)::setsid();                                 // no signals from the terminal or to its group
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)::prctl(PR_SET_NAME, "npushmem-superv");  // the system keeps 15 characters
    if (wait_for_start() && start_all()) run_event_loop();
    end_job();
    return 0;
}

bool Supervisor::wait_for_start() {
    const Received command = launcher_.receive(true);
    if (command.state != Received::State::message || command.message.kind != MessageKind::start) return false;
    for (std::size_t begin = 0; begin < command.payload.size();) {
        const std::size_t end = command.payload.find('\0', begin);
        const std::string entry = command.payload.substr(begin, end - begin);
        const std::size_t equals = entry.find('=');
        plan_.environment.set(entry.substr(0, equals), entry.substr(equals + 1));
        begin = end + 1;
    }
    return true;
}

// False: the launcher has ended, or a PE could not be started, which has been reported to the launcher.
bool Supervisor::start_all() {
    for (int pe = 0; pe < static_cast<int>(plan_.pes.size()); ++pe) {
        if (!start_one(pe)) return false;
        poller_.run_once(std::chrono::milliseconds(0));  // PEs that have ended already
        report_exits();
    }
    plan_.first_input.reset();
    detach_from_terminal();
    return true;
}

bool Supervisor::start_one(int pe) {
    const PePlan& place = plan_.pes[static_cast<std::size_t>(pe)];
    plan_.environment.set("NPUSHMEM_PE", std::to_string(plan_.numbering.of(pe)));
    if (place.emulated_host >= 0) plan_.environment.set("NPUSHMEM_EMULATED_HOST", std::to_string(place.emulated_host));
    Output output;
    if (plan_.pipe_output && !open_output(output)) {
        report_failure(pe, errno, "creating the pipes of its output");
        return false;
    }
    std::vector<char*> arguments;
    for (auto& argument : plan_.arguments) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    const CpuMask cpus(place.cpus);
    SpawnRequest request;
    request.program = plan_.program.c_str();
    request.arguments = arguments.data();
    request.input = pe != 0 || !plan_.hosts.empty() ? null_.get()
                    : plan_.first_input.valid()     ? plan_.first_input.get()
                                                    : 0;
    if (plan_.pipe_output) request.output = output.write[0].get(), request.errors = output.write[1].get();
    plan_.environment.set("NPUSHMEM_LAUNCHER_FD", launcher_pipe_ + log_.description(pe, request.errors));
    const auto environment = plan_.environment.pointers();
    request.environment = environment.data();
    request.cpus = cpus.set();
    request.cpus_bytes = cpus.bytes();
    request.signal_mask = &*plan_.signal_mask;
    Spawned made = spawn(request);
    if (made.error == 0) return watch_pe(pe, made.pid, std::move(made.process), output);
    report_failure(pe, made.error, made.attempt);
    return false;
}

bool Supervisor::open_output(Output& output) const {
    for (int stream = 0; stream < 2; ++stream) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
        output.read[stream] = FileDescriptor(ends[0]);
        output.write[stream] = FileDescriptor(ends[1]);
    }
    return true;
}

bool Supervisor::watch_pe(int pe, int pid, FileDescriptor process, const Output& output) {
    const Status watched = poller_.add(process.get(), EPOLLIN, [this, pid](std::uint32_t) { reap_pe(pid); });
    running_.emplace(pid, Running{pe, std::move(process)});
    if (!watched.ok()) {
        report_failure(pe, errno, "watching it");
        return false;
    }
    const std::array<int, 2> streams{output.read[0].get(), output.read[1].get()};
    const Message message{MessageKind::started, pe, pid, 0, 0};
    return launcher_.send(message, {}, std::span(streams).first(plan_.pipe_output ? 2 : 0));
}

void Supervisor::report_failure(int pe, int error, const char* attempt) const {
    (void)launcher_.send(Message{MessageKind::start_failed, pe, -1, error, 0}, attempt);
}

// A reader of the job's output must see its end when the PEs have ended, also if this process continues.
void Supervisor::detach_from_terminal() const {
    for (int standard = 0; standard < 3; ++standard) (void)::dup2(null_.get(), standard);
}

void Supervisor::run_event_loop() {
    const Status commands = poller_.add(launcher_.fd(), EPOLLIN, [this](std::uint32_t) { handle_command(); });
    const Status orphans = poller_.add(children_.get(), EPOLLIN, [this](std::uint32_t) {
        signalfd_siginfo info{};
        (void)!::read(children_.get(), &info, sizeof info);
    });
    closing_ = !commands.ok() || !orphans.ok();
    while (!closing_) {
        poller_.run_once(std::nullopt);
        report_exits();
        while (std::exchange(flush_requested_, false)) flush_exits();
        reap_orphans();
    }
}

// Reports every PE whose end another PE may have observed by now. The first to end is among the first
// that are reported.
void Supervisor::flush_exits() {
    poller_.run_once(std::chrono::milliseconds(0));
    wait_for_exiting_pes();
    report_exits();
    (void)launcher_.send(Message{MessageKind::exits_flushed, -1, -1, 0, 0});
}

void Supervisor::wait_for_exiting_pes() {
    const auto end = std::chrono::steady_clock::now() + exit_limit;
    while (!closing_ && is_any_pe_exiting() && std::chrono::steady_clock::now() < end)
        poller_.run_once(std::chrono::milliseconds(20));
}

// A program may exit with a status because another PE was killed. The kernel began to end that PE earlier, so it is
// reported first.
void Supervisor::report_exits() {
    const auto exited = [](const Message& end) {
        return end.termination == static_cast<std::int32_t>(TerminationKind::exited);
    };
    if (std::ranges::any_of(pending_exits_, [&](const Message& end) { return exited(end) && end.value != 0; }))
        wait_for_exiting_pes();
    std::stable_partition(pending_exits_.begin(), pending_exits_.end(), std::not_fn(exited));
    for (const Message& end : std::exchange(pending_exits_, {})) (void)launcher_.send(end);
}

bool Supervisor::is_any_pe_exiting() const {
    return std::ranges::any_of(running_, [](const auto& each) { return is_exiting(each.first); });
}

void Supervisor::handle_command() {
    const Received command = launcher_.receive(false);
    if (command.state == Received::State::closed) closing_ = true;
    if (command.state != Received::State::message) return;
    if (command.message.kind == MessageKind::signal) forward(command.message.value);
    if (command.message.kind == MessageKind::flush_exits) flush_requested_ = true;
}

// Sends the signal to the process group of every PE. A PE that has ended but is not reaped keeps its pid, so no other
// process receives the signal.
void Supervisor::forward(int signal) const {
    for (const auto& [pid, running] : running_) (void)::kill(-pid, signal);
}

void Supervisor::reap_pe(int pid) {
    const auto found = running_.find(pid);
    if (found == running_.end()) return;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid != pid) return;
    pending_exits_.push_back({MessageKind::ended, found->second.pe, pid, info.si_status,
                              static_cast<std::int32_t>(termination_kind(info.si_code))});
    poller_.remove(found->second.process.get());
    running_.erase(found);
}

// Reaps orphans of PEs that have ended. It stops at a PE, so that PEs are reported in the order of their ends; the
// remaining orphans are reaped after that PE.
void Supervisor::reap_orphans() const {
    for (;;) {
        siginfo_t info{};
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        if (running_.count(info.si_pid) != 0) return;
        (void)::waitpid(info.si_pid, nullptr, WNOHANG);
    }
}

void Supervisor::end_job() {
    forward(SIGKILL);
    (void)kill_descendants(kill_limit(plan_.job_pes));
    show_rest_of_log();
    HostTable::sweep(nic_table_place());
}

// The launcher was killed before it showed all reports of PEs. The supervisor does not wait for a slow reader.
void Supervisor::show_rest_of_log() {
    log_.continue_after_launcher();
    Diagnostics rest(static_cast<int>(plan_.pes.size()), plan_.pipe_output);
    for (const auto& record : log_.read()) rest.add(record, {});
    if (rest.empty()) return;
    OutputSink errors(errors_.get());
    errors.text() = rest.take_all();
    errors.flush();
}

}  // namespace npushmem::run
