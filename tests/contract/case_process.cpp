// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/case_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string_view>

extern char** environ;

namespace npushmem::contract {
namespace {

constexpr const char* role_variable = "NPUSHMEM_CONTRACT_ROLE";

std::string role_text(const ProcessRole& role) {
    std::array<char, 160> numbers{};
    (void)std::snprintf(numbers.data(), numbers.size(), "%d %d %d %d %" PRIu64 " %d %d ", role.results, role.pe,
                        role.npes, role.absent, role.bytes_per_pe, role.channel, role.file);
    return numbers.data() + role.case_name;
}

ProcessRole role_in_environment() {
    ProcessRole out;
    const char* text = std::getenv(role_variable);
    if (text == nullptr) return out;
    int length = 0;
    const int read = std::sscanf(text, "%d %d %d %d %" SCNu64 " %d %d %n", &out.results, &out.pe, &out.npes,
                                 &out.absent, &out.bytes_per_pe, &out.channel, &out.file, &length);
    if (read != 7 || length == 0) throw std::runtime_error(std::string(role_variable) + " is malformed: " + text);
    out.case_name = text + length;
    ::unsetenv(role_variable);
    // Otherwise tools show the process as "exe", the file's name in /proc.
    const std::string name = out.is_pe() ? "contract PE " + std::to_string(out.pe) : "contract case";
    ::prctl(PR_SET_NAME, name.c_str());
    for (const int descriptor : {out.results, out.channel, out.file})
        if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return out;
}

// The command line of this program, with GoogleTest's options replaced by a filter for one case.
std::vector<std::string> command_for(const std::string& case_name) {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<std::string> out;
    for (std::size_t at = 0; at < all.size(); at += out.back().size() + 1) out.emplace_back(all.c_str() + at);
    if (out.empty()) throw std::runtime_error("/proc/self/cmdline is not readable: cannot start the process of a case");
    std::erase_if(out, [](const std::string& word) { return word.starts_with("--gtest_"); });
    out.push_back("--gtest_filter=" + exact_filter(case_name));  // the process ignores other cases that match
    out.emplace_back("--gtest_brief=1");
    return out;
}

// The environment without GoogleTest's variables, which would choose other tests or write reports.
std::vector<std::string> environment_for(const ProcessRole& role) {
    std::vector<std::string> out;
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view text = *each;
        if (!text.starts_with("GTEST_") && !text.starts_with("XML_OUTPUT_FILE=") &&
            !text.starts_with("TESTBRIDGE_TEST_ONLY="))
            out.emplace_back(text);
    }
    out.push_back(std::string(role_variable) + "=" + role_text(role));
    return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> out;
    out.reserve(words.size() + 1);
    for (auto& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
}

// What the new process executes. After a fork of a process with threads only calls that are safe in a signal handler
// are allowed, so everything is prepared before.
struct Execution {
    std::vector<std::string> command;
    std::vector<std::string> environment;
    std::vector<char*> command_pointers;
    std::vector<char*> environment_pointers;
    std::array<int, 3> inherited;
    int output;
    bool own_group;
    pid_t parent;

    [[noreturn]] void run() const {
        if (own_group) ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(126);  // the parent ended before the call above
        if (const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0) ::dup2(null, STDIN_FILENO);
        if (output >= 0 && (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0)) ::_exit(126);
        for (const int descriptor : inherited)
            if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, 0);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        // Another program of the same file, because network libraries need not survive a fork.
        ::execve("/proc/self/exe", command_pointers.data(), environment_pointers.data());
        ::_exit(127);
    }
};

// A program that was started with SIGCHLD ignored would never learn how a process ended: the kernel reaps it at once.
void keep_ended_processes() {
    struct sigaction current {};
    if (::sigaction(SIGCHLD, nullptr, &current) != 0) return;
    const bool is_ignored = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_IGN;
    if (is_ignored || (current.sa_flags & SA_NOCLDWAIT) != 0) ::signal(SIGCHLD, SIG_DFL);
}

struct Header {
    std::uint32_t kind;
    std::int32_t line;
    std::uint32_t file_bytes;
    std::uint32_t text_bytes;
};

void write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;  // without a reader: the process that started this one has ended, and this one will
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace

const ProcessRole& own_role() {
    static const ProcessRole role = role_in_environment();
    return role;
}

void send_result(const ResultPart& part) {
    static std::mutex mutex;
    const Header header{static_cast<std::uint32_t>(part.kind), part.line, static_cast<std::uint32_t>(part.file.size()),
                        static_cast<std::uint32_t>(part.text.size())};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes += part.file;
    bytes += part.text;
    const std::lock_guard lock(mutex);
    write_all(own_role().results, bytes);
}

CaseProcess::CaseProcess(const ProcessRole& role, int output, Group group) : group_(group) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("cannot make a pipe for the results of a case: ") + std::strerror(errno));
    results_ = Descriptor(ends[0]);
    const Descriptor write_end(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ProcessRole complete = role;
    complete.results = ends[1];
    Execution execution{command_for(role.case_name),
                        environment_for(complete),
                        {},
                        {},
                        {ends[1], role.channel, role.file},
                        output,
                        group == Group::own,
                        ::getpid()};
    execution.command_pointers = pointers_to(execution.command);
    execution.environment_pointers = pointers_to(execution.environment);
    (void)std::fflush(nullptr);
    keep_ended_processes();
    id_ = ::fork();
    if (id_ == 0) execution.run();
    if (id_ < 0) throw std::runtime_error(std::string("cannot start the process of a case: ") + std::strerror(errno));
    if (group == Group::own) ::setpgid(id_, id_);  // both sides do: neither may continue before it
#ifdef SYS_pidfd_open
    end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));  // has close-on-exec
#endif
}

CaseProcess::~CaseProcess() {
    if (id_ <= 0 || has_ended()) return;
    kill();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!has_ended() && std::chrono::steady_clock::now() < limit) {
        pollfd waited{end_.get(), POLLIN, 0};  // without a descriptor: only waits
        (void)::poll(&waited, 1, 50);
    }
}

std::vector<ResultPart> CaseProcess::read_results() {
    std::array<char, 4096> buffer{};
    while (results_.get() >= 0) {
        const ssize_t got = ::read(results_.get(), buffer.data(), buffer.size());
        if (got > 0) {
            unread_.append(buffer.data(), static_cast<std::size_t>(got));
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) results_.close();
        break;
    }
    std::vector<ResultPart> out;
    Header header{};
    while (unread_.size() >= sizeof header) {
        std::memcpy(&header, unread_.data(), sizeof header);
        const std::size_t total = sizeof header + header.file_bytes + header.text_bytes;
        if (unread_.size() < total) break;
        ResultPart part{static_cast<ResultPart::Kind>(header.kind), header.line,
                        unread_.substr(sizeof header, header.file_bytes),
                        unread_.substr(sizeof header + header.file_bytes, header.text_bytes)};
        unread_.erase(0, total);
        has_begun_ = has_begun_ || part.kind == ResultPart::Kind::began;
        has_finished_ = has_finished_ || part.kind == ResultPart::Kind::finished;
        out.push_back(std::move(part));
    }
    return out;
}

bool CaseProcess::has_ended() {
    if (ended_) return true;
    siginfo_t information{};
    // The process is not reaped yet, so that its number cannot belong to another group when that is killed.
    const int found = ::waitid(P_PID, static_cast<id_t>(id_), &information, WEXITED | WNOHANG | WNOWAIT);
    if (found == 0 && information.si_pid != id_) return false;
    if (found != 0 && errno != ECHILD) return false;
    if (found == 0 && group_ == Group::own) kill();
    pid_t reaped = -1;
    do {
        reaped = ::waitpid(id_, &wait_status_, 0);
    } while (reaped < 0 && errno == EINTR);
    reaped_elsewhere_ = reaped != id_;
    ended_ = true;
    end_.close();
    return true;
}

void CaseProcess::signal(int number) const { ::kill(id_, number); }

void CaseProcess::kill() const { ::kill(group_ == Group::own ? -id_ : id_, SIGKILL); }

bool CaseProcess::exited_with(int status) const {
    return !reaped_elsewhere_ && WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == status;
}

std::string CaseProcess::how_it_ended() const {
    if (reaped_elsewhere_)
        return "was reaped by someone else, so its exit status is not known: nothing else in the program may wait for "
               "any child process (waitpid(-1), or a handler of SIGCHLD)";
    return describe_end(wait_status_) + " (pid " + std::to_string(id_) + ")";
}

std::string describe_end(int wait_status) {
    if (WIFSIGNALED(wait_status)) return "was killed by " + signal_name(WTERMSIG(wait_status));
    return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
}

std::string exact_filter(std::string name) {
    for (char& each : name)
        if (std::strchr("-:*", each) != nullptr) each = '?';
    return name;
}

std::string signal_name(int number) {
    switch (number) {
        case SIGABRT: return "SIGABRT";
        case SIGALRM: return "SIGALRM";
        case SIGBUS: return "SIGBUS";
        case SIGFPE: return "SIGFPE";
        case SIGHUP: return "SIGHUP";
        case SIGILL: return "SIGILL";
        case SIGINT: return "SIGINT";
        case SIGKILL: return "SIGKILL";
        case SIGPIPE: return "SIGPIPE";
        case SIGQUIT: return "SIGQUIT";
        case SIGSEGV: return "SIGSEGV";
        case SIGSYS: return "SIGSYS";
        case SIGTERM: return "SIGTERM";
        case SIGTRAP: return "SIGTRAP";
        default: return "signal " + std::to_string(number);
    }
}

}  // namespace npushmem::contract
