#include "core/tools/run/carrier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/base/parse.hpp"
#include "core/tools/run/environment_block.hpp"
#include "core/tools/run/exit_codes.hpp"
#include "core/tools/run/fd.hpp"
#include "core/tools/run/part_order.hpp"
#include "core/tools/run/pidfd.hpp"

namespace npushmem::run {
namespace {

constexpr std::array carried{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

int carrier_failed(const std::string& message) {
    fmt::print(stderr, "npushmem-run: {}\n", message);
    return exit_launcher_failed;
}

// Other variables belong to this host.
bool travels(const Options& options, std::string_view name) {
    if (name == "NPUSHMEM_PE" || name == "NPUSHMEM_LAUNCHER_FD") return false;
    if (name.starts_with("NPUSHMEM_") || name == "PATH" || name == "LD_LIBRARY_PATH") return true;
    if (name.starts_with("SHMEM_") || name.starts_with("SMA_")) return true;  // of OpenSHMEM
    for (const auto& variable : options.exports)
        if (variable.name == name) return true;
    return false;
}

PartOrder order_for(int host, const Options& options, const char* const* environment) {
    PartOrder order;
    std::error_code error;
    order.folder = std::filesystem::current_path(error).string();
    order.part = part_of_host(host, static_cast<int>(options.hosts.size()), options.npes, options.map_by);
    order.npes = options.npes;
    order.bind = options.bind;
    order.tag_output = options.tag_output;
    order.verbose = options.verbose;
    order.command = options.command;
    for (; *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        if (travels(options, entry.substr(0, entry.find('=')))) order.environment.emplace_back(entry);
    }
    return order;
}

// Returns in the parent only.
int start_shell(const Options& options, const std::string& host, int input) {
    std::vector<std::string> words = options.rsh;
    words.insert(words.end(), {host, options.remote_run, "--part"});
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int pid = ::fork();
    if (pid != 0) return pid;
    sigset_t none;
    sigemptyset(&none);
    (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)::dup2(input, STDIN_FILENO);
    (void)::execvp(arguments[0], arguments.data());
    fmt::print(stderr, "npushmem-run: cannot run the remote shell '{}': {}\n", words[0], std::strerror(errno));
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

// A signal travels as a byte with its number.
void pass_on(int signals, int order_end) {
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != sizeof info) return;
    const char number = static_cast<char>(info.ssi_signo);
    (void)write_all(order_end, {&number, 1});
}

int status_of(int shell) {
    int status = 0;
    (void)::waitpid(shell, &status, 0);
    return WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

int attend(int shell, int signals, int order_end) {
    const Fd process = open_pidfd(shell);
    for (;;) {
        std::array<pollfd, 2> events{pollfd{process.get(), POLLIN, 0}, pollfd{signals, POLLIN, 0}};
        (void)::poll(events.data(), events.size(), -1);
        if (events[0].revents != 0) return status_of(shell);
        if (events[1].revents != 0) pass_on(signals, order_end);
    }
}

}  // namespace

int run_carrier(const Options& options, const char* const* environment) {
    const auto block = EnvironmentBlock::copy_of(environment);
    const char* const text = block.value("NPUSHMEM_PE");
    const auto host = parse_integer(text != nullptr ? text : "", 0, static_cast<int>(options.hosts.size()) - 1);
    if (!host.ok()) return carrier_failed("--carry is npushmem-run's own; use --hosts");
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : carried) sigaddset(&signals, signal);
    (void)::sigprocmask(SIG_BLOCK, &signals, nullptr);
    (void)::signal(SIGPIPE, SIG_IGN);  // the shell's early end is seen by its process
    const Fd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC));
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return carrier_failed(fmt::format("pipe: {}", std::strerror(errno)));
    Fd reading(ends[0]);
    const Fd writing(ends[1]);
    const auto index = static_cast<std::size_t>(host.value());
    const int shell = start_shell(options, options.hosts[index], reading.get());
    if (shell < 0) return carrier_failed(fmt::format("fork: {}", std::strerror(errno)));
    reading.reset();
    (void)write_all(writing.get(), order_for(static_cast<int>(index), options, environment).encode());
    return attend(shell, signal_fd.get(), writing.get());
}

}  // namespace npushmem::run
