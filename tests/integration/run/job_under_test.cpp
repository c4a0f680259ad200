// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/run/job_under_test.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/processes.hpp"

namespace npushmem::run {
namespace {

// Ends a test whose job hangs. With 8 PEs on two cores, beside other programs, a job of thousands of barriers needs a
// minute.
constexpr std::chrono::seconds deadline{240};

bool readable(int fd) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(deadline).count())) == 1;
}

// Appending: several processes write, and the kernel keeps no order of writes at a memory file's position.
FileDescriptor memory_file(const char* name) {
    FileDescriptor file(::memfd_create(name, MFD_CLOEXEC));
    (void)::fcntl(file.get(), F_SETFL, O_APPEND);
    return file;
}

std::string contents(const FileDescriptor& file) {
    std::string out;
    std::array<char, 4096> bytes{};
    ssize_t count = 0;
    while ((count = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(out.size()))) > 0)
        out.append(bytes.data(), static_cast<std::size_t>(count));
    return out;
}

std::vector<std::string> stat_fields(int pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    const auto name_end = text.rfind(')');
    std::istringstream rest(name_end == std::string::npos ? "" : text.substr(name_end + 1));
    std::vector<std::string> fields;
    for (std::string field; rest >> field;) fields.push_back(field);
    return fields;
}

// The process that has the terminal while the launcher is in its background.
[[noreturn]] void hold_foreground(int terminal, int report_to, int taken) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTTOU);  // so that a process that is not in the foreground may take it
    sigprocmask(SIG_BLOCK, &set, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::tcsetpgrp(terminal, ::getpgrp());
    (void)!::write(taken, "t", 1);
    const std::string line = fmt::format("-1 foreground {}\n", ::getpid());
    (void)!::write(report_to, line.data(), line.size());
    int got = 0;
    sigdelset(&set, SIGTTOU);
    sigwait(&set, &got);
    ::tcsetpgrp(terminal, ::getppid());
    for (;;) ::pause();
}

void take_terminal(const JobSettings& settings, int report_to) {
    ::setsid();
    ::ioctl(settings.terminal, TIOCSCTTY, 0);
    if (!settings.in_background) return;
    // The launcher must find itself in the background from its first step on.
    std::array<int, 2> taken{};
    if (::pipe2(taken.data(), O_CLOEXEC) != 0) std::_Exit(96);
    if (::fork() == 0) hold_foreground(settings.terminal, report_to, taken[1]);
    char byte = 0;
    (void)!::read(taken[0], &byte, 1);
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

JobUnderTest::JobUnderTest(const std::vector<std::string>& arguments, const JobSettings& settings)
    : output_(memory_file("output")), errors_(memory_file("errors")) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reports_ = FileDescriptor(ends[0]);
    const FileDescriptor report_to(ends[1]);
    launcher_ = ::fork();
    if (launcher_ == 0) become_launcher(arguments, settings, report_to.get());
}

JobUnderTest::~JobUnderTest() {
    if (ended_) return;
    ::kill(launcher_, SIGTERM);
    ::kill(launcher_, SIGTERM);
    (void)end();
}

void JobUnderTest::become_launcher(const std::vector<std::string>& arguments, const JobSettings& settings,
                                   int report_to) {
    if (settings.own_group) ::setpgid(0, 0);
    if (settings.children_ignored) std::signal(SIGCHLD, SIG_IGN);
    if (settings.terminal >= 0) take_terminal(settings, report_to);
    const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(settings.input >= 0 ? settings.input : settings.terminal >= 0 ? settings.terminal : null.get(), 0);
    ::dup2(settings.output >= 0 ? settings.output : output_.get(), 1);
    ::dup2(errors_.get(), 2);
    (void)::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    const int inherited = ::dup(report_to);  // stays open in everything that is started from here
    auto environment = EnvironmentBlock::copy_of(environ);
    environment.set("RUN_TEST_REPORT", std::to_string(inherited));
    if (!settings.with_bootstrap) environment.set("NPUSHMEM_BOOTSTRAP", "none");
    for (const auto& entry : settings.environment)
        environment.set(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
    std::vector<std::string> words = arguments;
    words.insert(words.begin(), "npushmem-run");
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const auto max_files = static_cast<rlim_t>(settings.max_files);
    const rlimit limit{max_files, max_files};
    if (max_files > 0) ::setrlimit(RLIMIT_NOFILE, &limit);
    ::execve(RUN_TEST_LAUNCHER, pointers.data(), environment.pointers().data());
    std::_Exit(97);
}

int JobUnderTest::supervisor() const {
    std::ifstream names;
    int found = -1;
    EXPECT_TRUE(eventually([&] {
        for (int pid = launcher_ + 1; pid < launcher_ + 100 && found < 0; ++pid) {
            const auto fields = stat_fields(pid);
            if (fields.size() > 1 && fields[1] == std::to_string(launcher_)) found = pid;
        }
        return found > 0;
    }));
    return found;
}

void JobUnderTest::signal(int number) const { EXPECT_EQ(::kill(launcher_, number), 0); }

// False at the end of all processes that could report, or at the deadline.
bool JobUnderTest::read_more() {
    std::array<char, 4096> bytes{};
    if (!readable(reports_.get())) {
        ADD_FAILURE() << "nothing was reported for " << deadline.count() << " s";
        return false;
    }
    const ssize_t count = ::read(reports_.get(), bytes.data(), bytes.size());
    if (count > 0) unread_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
}

std::vector<Report> JobUnderTest::reports(int count) {
    std::vector<Report> out;
    while (static_cast<int>(out.size()) < count) {
        const auto newline = unread_.find('\n');
        if (newline == std::string::npos) {
            if (read_more()) continue;
            throw std::runtime_error(
                fmt::format("only {} of {} reports came; errors: {}", out.size(), count, errors()));
        }
        const std::string line = unread_.substr(0, newline);
        unread_.erase(0, newline + 1);
        const auto first = line.find(' ');
        const auto last = line.rfind(' ');
        out.push_back({std::atoi(line.substr(0, first).c_str()), line.substr(first + 1, last - first - 1),
                       std::atoi(line.substr(last + 1).c_str())});
    }
    return out;
}

int JobUnderTest::end_alone() {
    const FileDescriptor process = open_pidfd(launcher_);
    const bool in_time = readable(process.get());
    EXPECT_TRUE(in_time) << "the launcher did not end";
    if (!in_time) ::kill(launcher_, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(launcher_, &status, 0), launcher_);
    ended_ = true;
    expect_no_holder();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int JobUnderTest::end() {
    const int status = end_alone();
    expect_no_orphan();
    return status;
}

// Nobody has the reports' descriptor any more: every process of the job is gone that did not close it.
void JobUnderTest::expect_no_holder() {
    while (read_more()) {
    }
}

// Nothing that the job left has come to this process, its subreaper, and stayed.
void JobUnderTest::expect_no_orphan() {
    EXPECT_TRUE(eventually([] {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    })) << "a process of the job is still there";
}

void JobUnderTest::wait_until_stopped() const {
    int status = 0;
    EXPECT_EQ(::waitpid(launcher_, &status, WUNTRACED), launcher_);
    EXPECT_TRUE(WIFSTOPPED(status));
}

std::string JobUnderTest::output() const { return contents(output_); }
std::string JobUnderTest::errors() const { return contents(errors_); }

std::vector<std::string> helper_job(std::vector<std::string> options, const std::vector<std::string>& steps) {
    options.emplace_back(RUN_TEST_PE);
    options.insert(options.end(), steps.begin(), steps.end());
    return options;
}

char state_of(int pid) {
    const auto fields = stat_fields(pid);
    return fields.empty() ? '-' : fields[0][0];
}

bool wait_for_state(int pid, char state) {
    return eventually([&] { return state_of(pid) == state; });
}

std::vector<FileDescriptor> sockets_of(int pid) {
    std::vector<FileDescriptor> out;
    const FileDescriptor process = open_pidfd(pid);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
        const auto target = std::filesystem::read_symlink(entry.path(), error).string();
        const int number = std::atoi(entry.path().filename().c_str());
        if (!target.starts_with("socket:")) continue;
        FileDescriptor copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
        if (copy.valid()) out.push_back(std::move(copy));
    }
    return out;
}

bool has_joined(int pid) {
    if (!sockets_of(pid).empty()) return true;
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    return text.find("/memfd:npushmem") != std::string::npos;
}

std::vector<int> pids_by_pe(const std::vector<Report>& reports) {
    std::vector<int> out(reports.size());
    for (const auto& report : reports) out.at(static_cast<std::size_t>(report.pe)) = report.pid;
    // kill(0) and kill(-1) would end other processes than a PE.
    if (std::ranges::any_of(out, [](int pid) { return pid <= 0; })) throw std::runtime_error("a PE did not report");
    return out;
}

}  // namespace npushmem::run
