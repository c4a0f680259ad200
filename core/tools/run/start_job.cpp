// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/start_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/base/log.hpp"
#include "core/base/streams.hpp"
#include "core/base/version.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/launcher.hpp"
#include "core/tools/run/processes.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "core/tools/run/supervisor.hpp"

// The entry function of the plugin `uid`, which is linked into this program.
extern "C" const npushmem_bootstrap_v1* npushmem_bootstrap_entry_v1_uid(void);

namespace npushmem::run {

namespace {

// Gives the plugin the values of the PEs' environment, and a log of warnings and errors.
class LauncherHost {
public:
    explicit LauncherHost(EnvironmentBlock environment) : environment_(std::move(environment)) {}
    LauncherHost(const LauncherHost&) = delete;
    LauncherHost& operator=(const LauncherHost&) = delete;

    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message) {
        static_cast<LauncherHost*>(context)->log_.write(static_cast<LogLevel>(level), subsystem, "{}", message);
    }
    static const char* config(void* context, const char* name) {
        return static_cast<LauncherHost*>(context)->environment_.value(fmt::format("NPUSHMEM_{}", name));
    }

    EnvironmentBlock environment_;
    Log log_;
    npushmem_host table_{sizeof table_, library_version.major, library_version.minor, this, log, config};
};

class PluginRendezvous final : public Rendezvous {
public:
    PluginRendezvous(const EnvironmentBlock& environment, std::shared_ptr<const LoadedBootstrap> plugin)
        : outer_(environment), plugin_(std::move(plugin)), host_(outer_.table(), plugin_->config_rows()) {}

    Status make_id() { return make_uniqueid(*plugin_, host_.table(), id_); }

    [[nodiscard]] std::string unique_id() const override {
        std::string digits;
        for (const std::byte byte : id_) digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
        return digits;
    }

    void pe_ended(int pe, int npes, const std::string& how) override {
        (void)report_ended_rank(*plugin_, host_.table(), id_, pe, npes, how);
    }

private:
    LauncherHost outer_;
    std::shared_ptr<const LoadedBootstrap> plugin_;  // its service runs as long as the library is loaded
    PluginHost host_;
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id_{};
};

}  // namespace

namespace {

// Without directories of the user, the PEs load the same `uid` that is part of this program: no file need be loaded.
Result<std::shared_ptr<const LoadedBootstrap>> load_uid(std::string_view user_path) {
    GivenPlugins own;
    own.bootstraps.push_back(npushmem_bootstrap_entry_v1_uid());
    const PluginFinder finder =
        user_path.empty() ? PluginFinder({}, std::move(own)) : PluginFinder(plugin_search_path(user_path));
    return load_bootstrap(finder, "uid");
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const EnvironmentBlock& environment) {
    const char* path = environment.value("NPUSHMEM_PLUGIN_PATH");
    auto plugin = load_uid(path == nullptr ? "" : path);
    if (!plugin.ok()) return plugin.status().within("the job's rendezvous cannot be opened");
    auto made = std::make_unique<PluginRendezvous>(environment, std::move(plugin).value());
    const Status status = made->make_id();
    if (!status.ok()) return status.within("the job's rendezvous cannot be opened");
    return std::unique_ptr<Rendezvous>(std::move(made));
}

namespace {

// A background process's terminal, the end of a reader or a file size limit must not stop or kill the launcher: with
// these signals blocked the calls fail instead.
constexpr std::array merely_blocked{SIGPIPE, SIGTTIN, SIGTTOU, SIGXFSZ};

sigset_t signals_for(const Options& options) {
    return options.job_npes == 0 ? set_of(forwarded_signals) : set_of(agent_signals);
}

// Returns the previous mask, which PEs get.
sigset_t block_signals(const Options& options) {
    sigset_t before;
    (void)::sigprocmask(SIG_BLOCK, nullptr, &before);
    for (const auto& set : {set_of(merely_blocked), signals_for(options)})
        (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
    return before;
}

// An agent client also receives the signals that are sent before it is ready.
sigset_t with_agent_signals(sigset_t mask) {
    for (const int signal : agent_signals) sigaddset(&mask, signal);
    return mask;
}

// The output of each PE needs two descriptors. PEs inherit the limit; a PE that maps many peers needs it too.
void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// Returns a pipe to PE 0, {reading end, writing end}, if standard input is a terminal, otherwise neither.
std::array<FileDescriptor, 2> terminal_pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::isatty(STDIN_FILENO) != 0) (void)!::pipe2(ends.data(), O_CLOEXEC);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Returns the pipe for exit requests, {reading end, writing end}. Every PE inherits the writing end.
// NPUSHMEM_LAUNCHER_FD holds its number, device and inode, by which a PE checks that the descriptor still is that pipe.
std::array<FileDescriptor, 2> request_pipe(EnvironmentBlock& environment) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {};
    (void)::fcntl(ends[1], F_SETFD, 0);
    struct stat pipe {};
    (void)::fstat(ends[1], &pipe);
    environment.set("NPUSHMEM_LAUNCHER_FD", fmt::format("{}:{}:{}", ends[1], pipe.st_dev, pipe.st_ino));
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

int run_supervisor(JobPlan plan, Channel channel, JobLog log) {
    auto poller = DispatchingPoller::open();
    if (!poller.ok()) return exit_launcher_failed;
    return Supervisor(std::move(plan), std::move(channel), std::move(log), std::move(poller).value()).run();
}

int fail(const std::string& message) {
    write_error(fmt::format("npushmem-run: {}\n", message));
    return exit_launcher_failed;
}

// From here on only PE 0 reads standard input, so its writer sees when PE 0 stops reading.
void release_input() {
    const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    (void)::dup2(null.get(), STDIN_FILENO);
}

int run_launcher(const Options& options, const JobPlan& plan, Channel channel, JobLog log, int supervisor,
                 FileDescriptor terminal, FileDescriptor requests) {
    FileDescriptor process = open_pidfd(supervisor);
    const sigset_t signals = signals_for(options);
    FileDescriptor signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    auto poller = DispatchingPoller::open();
    if (!process.valid() || !signal_fd.valid() || !requests.valid() || !poller.ok())
        return fail(fmt::format("pidfd, signalfd, pipe or epoll for the supervisor process: {}", std::strerror(errno)));
    if (!terminal.valid()) release_input();
    Launcher launcher(options, plan,
                      {std::move(channel), supervisor, std::move(process), std::move(signal_fd), std::move(terminal),
                       std::move(requests), std::move(log), std::move(poller).value()});
    return launcher.run();
}

}  // namespace

int run_job(const Options& options, JobPlan plan) {
    const sigset_t mask = block_signals(options);
    if (!plan.signal_mask) plan.signal_mask = plan.hosts.empty() ? mask : with_agent_signals(mask);
    raise_file_limit();
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto ends = Channel::pair();
    if (!ends.ok()) return fail(ends.status().message());
    auto [launcher_end, supervisor_end] = std::move(ends).value();
    auto terminal = terminal_pipe();
    auto requests = request_pipe(plan.environment);
    auto log = JobLog::create(static_cast<int>(plan.pes.size()));
    const int pid = ::fork();
    if (pid < 0) return fail(fmt::format("fork of the supervisor process: {}", std::strerror(errno)));
    if (pid == 0) {
        launcher_end.close();
        terminal[1].reset();
        requests[0].reset();
        plan.first_input = std::move(terminal[0]);
        ::_exit(run_supervisor(std::move(plan), std::move(supervisor_end), std::move(log)));
    }
    supervisor_end.close();
    terminal[0].reset();
    requests[1].reset();
    return run_launcher(options, plan, std::move(launcher_end), std::move(log), pid, std::move(terminal[1]),
                        std::move(requests[0]));
}

}  // namespace npushmem::run
