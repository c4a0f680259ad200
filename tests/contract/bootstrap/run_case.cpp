// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/bootstrap/run_case.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace npushmem::contract {
namespace {

// Its value is the descriptor of the file for the child's result: a CaseResult::Kind followed by the text.
constexpr const char* child_variable = "NPUSHMEM_CONTRACT_CHILD";
constexpr const char* in_process_variable = "NPUSHMEM_CONTRACT_IN_PROCESS";

// Variables of GoogleTest that would make the child select other tests, or overwrite the parent's report.
constexpr std::array<std::string_view, 7> parent_only{
    "NPUSHMEM_CONTRACT_CHILD=", "GTEST_FILTER=",       "GTEST_OUTPUT=",   "GTEST_REPEAT=",
    "GTEST_SHARD_INDEX=",       "GTEST_TOTAL_SHARDS=", "XML_OUTPUT_FILE="};

std::string file_end(int descriptor, std::size_t limit) {
    struct stat facts {};
    if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) return {};
    const auto size = static_cast<std::size_t>(facts.st_size);
    std::string out(std::min(size, limit), '\0');
    const auto got = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(size - out.size()));
    out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return size > out.size() ? "[...]" + out : out;
}

// The program's arguments without GoogleTest's.
std::vector<std::string> own_arguments() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> out;
    for (std::string argument; std::getline(file, argument, '\0');)
        if (out.empty() || !argument.starts_with("--gtest_")) out.push_back(argument);
    return out;
}

std::string filter_of_current_test() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return exact_filter(std::string(test->test_suite_name()) + "." + test->name());
}

std::vector<std::string> child_environment(int result_descriptor) {
    std::vector<std::string> out{std::string(child_variable) + "=" + std::to_string(result_descriptor)};
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view entry(*each);
        const auto same = [entry](std::string_view name) { return entry.starts_with(name); };
        if (std::none_of(parent_only.begin(), parent_only.end(), same)) out.emplace_back(entry);
    }
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& each : strings) out.push_back(each.data());
    out.push_back(nullptr);
    return out;
}

// Between fork and exec only functions that are safe in a child of a process with threads.
[[noreturn]] void execute_child(char* const* arguments, char* const* environment, int output, pid_t parent) {
    (void)::setpgid(0, 0);
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    (void)::dup2(output, STDOUT_FILENO);
    (void)::dup2(output, STDERR_FILENO);
    ::execve("/proc/self/exe", arguments, environment);
    constexpr std::string_view message = "cannot execute /proc/self/exe\n";
    (void)!::write(STDERR_FILENO, message.data(), message.size());
    ::_exit(127);
}

// Waits until the process has ended. Returns false if it had to be killed at the deadline.
bool await_end(pid_t process, std::chrono::seconds deadline, int& status) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    for (;;) {
        const pid_t ended = ::waitpid(process, &status, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR)) return true;
        if (std::chrono::steady_clock::now() > until) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    (void)::kill(-process, SIGKILL);
    (void)::waitpid(process, &status, 0);
    return false;
}

int result_descriptor_of_child() {
    const char* const value = std::getenv(child_variable);
    return value == nullptr ? -1 : std::atoi(value);
}

}  // namespace

OutputFile::OutputFile() : descriptor_(::memfd_create("contract-output", MFD_CLOEXEC)) {}
OutputFile::OutputFile(OutputFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
OutputFile::~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}
std::string OutputFile::text() const { return file_end(descriptor_, max_quoted_bytes); }

std::string describe_end(int status) {
    if (WIFEXITED(status)) return "exited with status " + std::to_string(WEXITSTATUS(status));
    const int number = WTERMSIG(status);
    return "was ended by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

std::string exact_filter(std::string name) {
    for (char& each : name)
        if (std::string_view("-:*?").find(each) != std::string_view::npos) each = '?';
    return name;
}

bool is_child_for_one_case() { return result_descriptor_of_child() >= 0; }

bool is_case_process() {
    const char* const value = std::getenv(in_process_variable);
    return is_child_for_one_case() || (value != nullptr && std::string_view(value) == "1");
}

CaseResult run_case_again(std::chrono::seconds deadline) {
    const OutputFile output;
    const OutputFile record;
    const int inherited = ::dup(record.descriptor());  // without close-on-exec
    if (output.descriptor() < 0 || inherited < 0)
        return {CaseResult::Kind::failed,
                std::string("cannot make files for a case's output: ") + std::strerror(errno)};
    std::vector<std::string> arguments = own_arguments();
    arguments.push_back("--gtest_filter=" + filter_of_current_test());
    arguments.emplace_back("--gtest_color=no");
    std::vector<std::string> environment = child_environment(inherited);
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> envp = pointers(environment);
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process == 0) execute_child(argv.data(), envp.data(), output.descriptor(), parent);
    const int fork_error = errno;
    ::close(inherited);
    if (process < 0)
        return {CaseResult::Kind::failed,
                std::string("cannot start a process for a case: ") + std::strerror(fork_error)};
    int status = 0;
    if (!await_end(process, deadline, status))
        return {CaseResult::Kind::failed, "the case's process still ran after " + std::to_string(deadline.count()) +
                                              " s and was killed; its output:\n" + output.text()};
    const std::string result = record.text();
    const bool reported = !result.empty() && WIFEXITED(status);
    if (!reported)
        return {CaseResult::Kind::failed, "the case's process " + describe_end(status) +
                                              " without a result; does main() call RUN_ALL_TESTS with the arguments of "
                                              "the program? Its output:\n" +
                                              output.text()};
    const auto kind = static_cast<CaseResult::Kind>(result[0]);
    // A failure that the process found after the result, such as a leak.
    if (kind != CaseResult::Kind::failed && WEXITSTATUS(status) != 0)
        return {CaseResult::Kind::failed,
                "the case's process " + describe_end(status) + "; its output:\n" + output.text()};
    return {kind, result.substr(1)};
}

void report_case(const CaseResult& result) {
    if (const int record = result_descriptor_of_child(); record >= 0) {
        const std::size_t begin = result.text.size() - std::min(result.text.size(), max_quoted_bytes - 1);
        const std::string bytes = static_cast<char>(result.kind) + result.text.substr(begin);
        if (::write(record, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            FAIL() << "cannot report the result to the parent: " << std::strerror(errno);
    }
    if (result.kind == CaseResult::Kind::skipped) GTEST_SKIP() << result.text;
    if (result.kind == CaseResult::Kind::failed) FAIL() << result.text;
}

}  // namespace npushmem::contract
