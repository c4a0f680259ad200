// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/case_runner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "tests/contract/case_process.hpp"
#include "tests/contract/process_states.hpp"

namespace npushmem::contract {
namespace {

using Clock = std::chrono::steady_clock;

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

// The last part of what a process wrote.
class CapturedOutput {
public:
    // `echo`: also prints everything at once.
    CapturedOutput(int descriptor, bool echo) : descriptor_(descriptor), echo_(echo) {
        ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    }
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }
    void read() {
        std::array<char, 4096> buffer{};
        while (descriptor_.get() >= 0) {
            const ssize_t got = ::read(descriptor_.get(), buffer.data(), buffer.size());
            if (got < 0 && errno == EINTR) continue;
            if (got == 0) descriptor_.close();
            if (got <= 0) return;
            add({buffer.data(), static_cast<std::size_t>(got)});
        }
    }
    void print(const std::string& case_name) const {
        if (echo_ || text_.empty()) return;
        (void)std::printf("---- output of %s%s\n%s%s---- end of the output\n", case_name.c_str(),
                          dropped_ ? ", its last part" : "", text_.c_str(), text_.back() == '\n' ? "" : "\n");
        (void)std::fflush(stdout);
    }

private:
    void add(std::string_view bytes) {
        if (echo_) {
            (void)std::fwrite(bytes.data(), 1, bytes.size(), stdout);
            (void)std::fflush(stdout);
            return;
        }
        constexpr std::size_t limit = 64 << 10;
        text_ += bytes;
        if (text_.size() <= limit) return;
        dropped_ = true;
        text_.erase(0, text_.size() - limit);
    }

    Descriptor descriptor_;
    bool echo_;
    std::string text_;
    bool dropped_ = false;
};

// The outcome of one process of a case.
struct Outcome {
    std::vector<ResultPart> parts;
    std::optional<std::string> hang;  // what the processes were doing
};

void wait_for_output(CaseProcess& process, CapturedOutput& output, Clock::time_point end) {
    std::array<pollfd, 3> waited{
        {{output.descriptor(), POLLIN, 0}, {process.results(), POLLIN, 0}, {process.end(), POLLIN, 0}}};
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (process.end() < 0) left = std::min<long>(left, 50);  // a kernel that cannot wait for a process's end as well
    (void)::poll(waited.data(), waited.size(), static_cast<int>(std::clamp<long>(left, 0, 60'000)));
}

Outcome follow(CaseProcess& process, CapturedOutput& output, std::chrono::seconds deadline) {
    Outcome out;
    const auto collect = [&] {
        output.read();
        for (auto& part : process.read_results()) out.parts.push_back(std::move(part));
    };
    auto end = Clock::now() + deadline;
    while (!process.has_ended()) {
        wait_for_output(process, output, end);
        collect();
        if (Clock::now() < end) continue;
        if (out.hang) break;  // not even SIGKILL ended it
        out.hang = states_of_group(process.id());
        process.kill();
        end = Clock::now() + std::chrono::seconds(30);
    }
    collect();
    return out;
}

// Only a normal return of main() is attributed to it: a process may also be killed, for example for lack of memory.
const char* cause_of_early_end(const CaseProcess& process) {
    if (process.exited_with(0) || process.exited_with(1))
        return ": main() must pass all its arguments to InitGoogleTest, and call RUN_ALL_TESTS";
    if (process.exited_with(127)) return ": it cannot execute /proc/self/exe";
    return "";
}

void report_end(const CaseProcess& process, bool has_failures) {
    if (!process.has_begun())
        ADD_FAILURE() << "the process of the case " << process.how_it_ended() << " before the case began"
                      << cause_of_early_end(process);
    else if (!process.has_finished())
        ADD_FAILURE() << "the process of the case " << process.how_it_ended();
    else if (!process.exited_with_success() && !has_failures)
        ADD_FAILURE() << "the process " << process.how_it_ended() << " after the case had finished without a failure";
}

void run_in_own_process(const std::string& name, std::chrono::seconds deadline) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0) << "cannot make a pipe: " << std::strerror(errno);
    CapturedOutput output(ends[0], prints_all_output());
    std::unique_ptr<CaseProcess> process;
    {
        const Descriptor write_end(ends[1]);
        ProcessRole role;
        role.case_name = name;
        process = std::make_unique<CaseProcess>(role, write_end.get(), CaseProcess::Group::own);
    }
    const Outcome outcome = follow(*process, output, deadline);
    const ResultPart* skip = nullptr;
    bool has_failures = false;
    for (const auto& part : outcome.parts) {
        if (part.kind == ResultPart::Kind::skip) skip = &part;
        if (part.kind != ResultPart::Kind::failure) continue;
        has_failures = true;
        forward_failure(part);
    }
    if (outcome.hang)
        ADD_FAILURE() << "did not finish within " << deadline.count() << " s\n" << *outcome.hang;
    else
        report_end(*process, has_failures);
    if (::testing::Test::HasFailure()) return output.print(name);
    if (skip != nullptr) GTEST_SKIP() << skip->text;
}

thread_local bool forwards = false;  // while the failure of another process is added

// The process in which a failure occurs, as the start of its message.
std::string own_process() {
    const std::string number = std::to_string(::getpid());
    const ProcessRole& role = own_role();
    return role.is_pe() ? "PE " + std::to_string(role.pe) + ", pid " + number + ": "
                        : "the process of the case, pid " + number + ": ";
}

// Sends every result to the process that started this one.
class ResultSender : public ::testing::EmptyTestEventListener {
public:
    void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (result.passed()) return;
        const std::string origin = result.skipped() || forwards ? "" : own_process();
        send_result({result.skipped() ? ResultPart::Kind::skip : ResultPart::Kind::failure, result.line_number(),
                     result.file_name() == nullptr ? "" : result.file_name(), origin + result.message()});
    }
};

// Prints every failure, for the report of the process that reads the output.
class FailurePrinter : public ::testing::EmptyTestEventListener {
public:
    void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (!result.failed()) return;
        (void)std::printf("%s:%d: Failure\n%s\n", result.file_name() == nullptr ? "unknown file" : result.file_name(),
                          result.line_number(), result.message());
        (void)std::fflush(stdout);
    }
};

ResultSender* installed_sender = nullptr;  // owned by GoogleTest

void run_in_role(const std::function<void()>& body) {
    // What a transport wrote must not be lost if it crashes.
    (void)std::fflush(stdout);
    (void)std::setvbuf(stdout, nullptr, _IONBF, 0);
    (void)std::signal(SIGPIPE, SIG_DFL);  // a transport that causes it must fail visibly
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());  // the starter prints the failures
    installed_sender = new ResultSender;
    listeners.Append(installed_sender);
    send_result({ResultPart::Kind::began, -1, {}, {}});
    try {
        body();
    } catch (const std::exception& caught) {
        ADD_FAILURE() << "an exception ended the case: " << caught.what();
    } catch (...) {
        ADD_FAILURE() << "an exception that is no std::exception ended the case";
    }
    send_result({ResultPart::Kind::finished, -1, {}, {}});
}

// Prints the names of tests in the form of --gtest_list_tests.
class CaseLister : public ::testing::EmptyTestEventListener {
public:
    void OnTestSuiteStart(const ::testing::TestSuite& suite) override { (void)std::printf("%s.\n", suite.name()); }
    void OnTestStart(const ::testing::TestInfo& test) override { (void)std::printf("  %s\n", test.name()); }
};

bool lists = false;

class CaseTest : public ::testing::Test {
public:
    explicit CaseTest(std::shared_ptr<const RegisteredCase> registered) : registered_(std::move(registered)) {}

    void TestBody() override {
        const std::string name = registered_->suite + "." + registered_->name;
        if (is_listing()) {
            (void)std::printf("      %s\n", registered_->rule.c_str());
        } else if (!own_role().is_started_for_a_case()) {
            constexpr int without_line = -1;
            const ::testing::ScopedTrace trace("rule", without_line, registered_->rule);
            if (is_set("NPUSHMEM_CONTRACT_IN_PROCESS")) return registered_->body();
            run_in_own_process(name, registered_->deadline);
        } else if (own_role().case_name == name) {
            run_in_role(registered_->body);
        }
    }

private:
    std::shared_ptr<const RegisteredCase> registered_;
};

}  // namespace

void register_case(RegisteredCase added) {
    static std::set<std::string> names;
    (void)own_role();  // before there are threads
    if (!names.insert(added.suite + "." + added.name).second)
        throw std::invalid_argument("there are two cases " + added.suite + "." + added.name +
                                    ": give the subjects of the contract different names");
    const auto shared = std::make_shared<const RegisteredCase>(std::move(added));
    ::testing::RegisterTest(shared->suite.c_str(), shared->name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [shared]() -> ::testing::Test* { return new CaseTest(shared); });
}

void forward_failure(const ResultPart& part) {
    forwards = true;
    ADD_FAILURE_AT(part.file.empty() ? "unknown file" : part.file.c_str(), part.line) << part.text;
    forwards = false;
}

int list_cases() {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new CaseLister);
    lists = true;
    return RUN_ALL_TESTS();
}

bool is_listing() { return lists; }

void print_results() {
    if (installed_sender == nullptr) return;
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(installed_sender);
    installed_sender = nullptr;
    ::close(own_role().results);
    listeners.Append(new FailurePrinter);
}

bool prints_all_output() { return is_set("NPUSHMEM_CONTRACT_VERBOSE"); }

std::string running_case() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    if (info == nullptr) throw std::logic_error("no case is running");
    return std::string(info->test_suite_name()) + "." + info->name();
}

}  // namespace npushmem::contract
