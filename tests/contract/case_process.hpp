// SPDX-License-Identifier: BSD-3-Clause
// Processes of a case: each executes the test program again, with a filter for the one case. Such a process sends the
// results of GoogleTest to the process that started it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace npushmem::contract {

// Owns a descriptor.
class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { close(); }

    [[nodiscard]] int get() const { return number_; }
    void close() {
        if (number_ >= 0) ::close(number_);
        number_ = -1;
    }

private:
    int number_;
};

// What a process of a case is for.
struct ProcessRole {
    std::string case_name;  // "suite.case"; empty: this is not the process of a case
    int results = -1;       // descriptor for the results
    // Only if the process is one PE of the case:
    int pe = -1;
    int npes = 0;    // PEs that are processes
    int absent = 0;  // further PEs of the job, which the case's process may open itself
    std::uint64_t bytes_per_pe = 0;
    int channel = -1;  // socket to the case's process
    int file = -1;     // the memory of all PEs, or -1: each PE makes its own

    [[nodiscard]] bool is_started_for_a_case() const { return !case_name.empty(); }
    [[nodiscard]] bool is_pe() const { return pe >= 0; }
};

// The role of this process, from its environment. The first call, which must precede the start of threads, removes the
// role from the environment, so that programs that this process starts do not have it.
const ProcessRole& own_role();

// One message of a process of a case.
struct ResultPart {
    enum class Kind : std::uint8_t { began, failure, skip, finished };
    Kind kind = Kind::failure;
    int line = -1;
    std::string file;
    std::string text;
};

// Sends one message of this process, which has a role. Any thread.
void send_result(const ResultPart& part);

// A started process, and its results so far. Kills the process if it is left, and waits at most 10 s for its end: a
// process in an uninterruptible system call ends later.
class CaseProcess {
public:
    enum class Group { own, same };

    // Starts a process with this role, whose `results` is ignored. `output`: descriptor that becomes its standard
    // output and error; -1: those of this process. Throws std::runtime_error.
    CaseProcess(const ProcessRole& role, int output, Group group);
    CaseProcess(const CaseProcess&) = delete;
    CaseProcess& operator=(const CaseProcess&) = delete;
    ~CaseProcess();

    [[nodiscard]] pid_t id() const { return id_; }
    // Descriptors that are readable when there are results, or when the process has ended; -1: none (any more).
    [[nodiscard]] int results() const { return results_.get(); }
    [[nodiscard]] int end() const { return end_.get(); }

    // Reads the available results without waiting. Returns the new ones.
    std::vector<ResultPart> read_results();
    // Checks without waiting whether the process has ended; if so, first kills what is left of a group of its own. A
    // process that something else in this program has reaped has ended, with an unknown status.
    bool has_ended();
    void signal(int number) const;
    // Sends SIGKILL to the process, or to its own group.
    void kill() const;

    // Once it has ended, and all results are read.
    [[nodiscard]] bool exited_with(int status) const;
    [[nodiscard]] bool exited_with_success() const { return exited_with(0); }
    [[nodiscard]] bool has_begun() const { return has_begun_; }
    [[nodiscard]] bool has_finished() const { return has_finished_; }
    // As describe_end, with the number of the process.
    [[nodiscard]] std::string how_it_ended() const;

private:
    pid_t id_ = -1;
    Group group_;
    Descriptor results_;
    Descriptor end_;
    std::string unread_;  // bytes of an incomplete result
    bool ended_ = false;
    bool reaped_elsewhere_ = false;  // so that wait_status_ is not known
    int wait_status_ = 0;
    bool has_begun_ = false;
    bool has_finished_ = false;
};

// "was killed by SIGSEGV", "exited with status 3"; `wait_status` is that of waitpid.
std::string describe_end(int wait_status);

// A value of --gtest_filter that matches this test. '?' stands for characters that have a meaning in filters, so it can
// match other tests as well.
std::string exact_filter(std::string name);

// "SIGSEGV", or "signal 42".
std::string signal_name(int number);

}  // namespace npushmem::contract
