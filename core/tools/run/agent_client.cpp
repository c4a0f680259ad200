// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/remote_launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "core/base/parse.hpp"
#include "core/base/poller.hpp"
#include "core/base/streams.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/processes.hpp"
#include "core/tools/run/record_relay.hpp"

namespace npushmem::run {
namespace {

int agent_client_failed(const std::string& message) {
    write_error(fmt::format("npushmem-run: {}\n", message));
    return exit_launcher_failed;
}

// Other variables belong to this host.
bool is_forwarded(const Options& options, std::string_view name) {
    if (name == "NPUSHMEM_PE" || name == "NPUSHMEM_LAUNCHER_FD") return false;
    if (name.starts_with("NPUSHMEM_") || name == "PATH" || name == "LD_LIBRARY_PATH") return true;
    if (name.starts_with("SHMEM_") || name.starts_with("SMA_")) return true;  // of OpenSHMEM
    for (const auto& variable : options.exports)
        if (variable.name == name) return true;
    return false;
}

LaunchRequest make_launch_request(int host, const Options& options, const std::string& mark,
                                  const char* const* environment) {
    LaunchRequest request;
    request.record_mark = mark;
    std::error_code error;
    request.folder = std::filesystem::current_path(error).string();
    request.pes = pes_of_host(host, static_cast<int>(options.hosts.size()), options.npes, options.map_by);
    request.npes = options.npes;
    request.bind = options.bind;
    request.tag_output = options.tag_output;
    request.verbose = options.verbose;
    request.command = options.command;
    for (; *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        if (is_forwarded(options, entry.substr(0, entry.find('=')))) request.environment.emplace_back(entry);
    }
    return request;
}

// Signals to the agent client's group reach the host as bytes only, because any of them could end the remote shell.
void leave_signals_to_agent_client() {
    (void)::setpgid(0, 0);
    for (const int signal : agent_signals)  // ignoring a signal discards one that arrived since the fork
        if (const auto before = ::signal(signal, SIG_IGN); before != SIG_IGN) (void)::signal(signal, before);
    sigset_t none;
    sigemptyset(&none);
    (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Returns in the parent only.
int start_shell(const Options& options, const std::string& host, int input, int errors) {
    std::vector<std::string> words = options.rsh;
    words.insert(words.end(), {host, options.remote_run, "--host-agent"});
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int pid = ::fork();
    if (pid != 0) return pid;
    leave_signals_to_agent_client();
    (void)::dup2(input, STDIN_FILENO);
    (void)::dup2(errors, STDERR_FILENO);
    (void)::execvp(arguments[0], arguments.data());
    write_error(fmt::format("npushmem-run: cannot run the remote shell '{}': {}\n", words[0], std::strerror(errno)));
    ::_exit(exit_launcher_failed);
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) return false;
        if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

// Sends a signal as one byte, its number.
void forward_signal(int signals, int launch_pipe_end) {
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != sizeof info) return;
    const char number = static_cast<char>(info.ssi_signo);
    (void)write_all(launch_pipe_end, {&number, 1});
}

// {reading end, writing end}; neither is open on failure.
std::array<FileDescriptor, 2> open_pipe() {
    std::array<int, 2> ends{-1, -1};
    (void)!::pipe2(ends.data(), O_CLOEXEC);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

int status_of(int shell) {
    int status = 0;
    if (::waitpid(shell, &status, 0) != shell)
        return agent_client_failed(fmt::format("wait for the remote shell: {}", std::strerror(errno)));
    return WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

int wait_for_shell(int shell, int signals, int launch_pipe_end) {
    const FileDescriptor process = open_pidfd(shell);
    if (!process.valid())
        return agent_client_failed(fmt::format("pidfd of the remote shell: {}", std::strerror(errno)));
    for (;;) {
        std::array<pollfd, 2> events{pollfd{process.get(), POLLIN, 0}, pollfd{signals, POLLIN, 0}};
        (void)::poll(events.data(), events.size(), -1);
        if (events[0].revents != 0) return status_of(shell);
        if (events[1].revents != 0) forward_signal(signals, launch_pipe_end);
    }
}

}  // namespace

int run_agent_client(const Options& options, const char* const* environment) {
    const auto block = EnvironmentBlock::copy_of(environment);
    const char* const text = block.value("NPUSHMEM_PE");
    const auto host = parse_integer(text != nullptr ? text : "", 0, static_cast<int>(options.hosts.size()) - 1);
    if (!host.ok()) return agent_client_failed("--agent-client is npushmem-run's own; use --hosts");
    const sigset_t signals = set_of(agent_signals);
    (void)::sigprocmask(SIG_BLOCK, &signals, nullptr);
    const FileDescriptor signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC));
    const std::string mark = make_mark();
    auto launch_pipe = open_pipe();
    auto error_pipe = open_pipe();
    if (mark.empty() || !launch_pipe[1].valid() || !error_pipe[1].valid())
        return agent_client_failed(fmt::format("getrandom or pipe: {}", std::strerror(errno)));
    const auto index = static_cast<std::size_t>(host.value());
    const int shell = start_shell(options, options.hosts[index], launch_pipe[0].get(), error_pipe[1].get());
    if (shell < 0) return agent_client_failed(fmt::format("fork: {}", std::strerror(errno)));
    launch_pipe[0].reset();
    error_pipe[1].reset();
    (void)::signal(SIGPIPE, SIG_IGN);  // the end of the shell's process reports its early end
    const auto relay = ErrorRelay::start(std::move(error_pipe[0]), mark);
    if (!relay.ok()) return agent_client_failed(relay.status().message());
    (void)write_all(launch_pipe[1].get(),
                    make_launch_request(static_cast<int>(index), options, mark, environment).encode());
    const int status = wait_for_shell(shell, signal_fd.get(), launch_pipe[1].get());
    relay.value()->finish();
    // The launcher counts the failed calls of all hosts, once every PE has ended.
    return status == exit_calls_failed && relay.value()->passed_failed_calls() ? 0 : status;
}

}  // namespace npushmem::run
