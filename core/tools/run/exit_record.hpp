// SPDX-License-Identifier: BSD-3-Clause
// Ends of PEs: exit statuses, records of ends, requests of PEs to end the job, and the outcome on one host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::run {

// Exit statuses of the launcher itself. When a PE fails, the launcher exits with the status of that PE.
constexpr int exit_usage = 2;              // a mistake on the command line
constexpr int exit_calls_failed = 123;     // of a host agent: calls failed and nothing else
constexpr int exit_timeout = 124;          // --timeout has passed
constexpr int exit_launcher_failed = 125;  // the launcher itself failed
constexpr int exit_not_executable = 126;   // the program exists but cannot be executed
constexpr int exit_not_found = 127;        // the program does not exist
constexpr int exit_signal_base = 128;      // plus the signal's number

// How a PE ended.
enum class TerminationKind { exited, killed, dumped_core };

struct ExitRecord {
    int pe = 0;
    int pid = 0;
    TerminationKind termination = TerminationKind::exited;
    int value = 0;  // exit status, or the signal's number

    [[nodiscard]] bool failed() const { return termination != TerminationKind::exited || value != 0; }
};

// `code`: si_code of waitid.
TerminationKind termination_kind(int code);

// Returns the launcher's exit status when this is the first failure (0 if it is not a failure): the status, or 128 +
// the signal.
int exit_code_of(const ExitRecord& end);

// "SIGSEGV"; "signal 64" for one without a name.
std::string signal_name(int signal);

// "exited with status 3" or "was killed by signal 11 (...)".
std::string describe_termination(const ExitRecord& end);

// "PE 3 (pid 77, host a, emulated host 1) was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped".
// `emulated_host` is -1 for none.
std::string describe(const ExitRecord& end, const std::string& host, int emulated_host);

// Requests of PEs to the launcher: lines on a pipe whose writing end every PE inherits.
//     exit <pe> <status>     npushmem_global_exit(status) was called
//     exit <pe> <status> shmem    the same, by its name in OpenSHMEM
//     failed <pe> <status>   the PE cannot go on; the library has reported why
//     wake                   a record was appended to the log of core/base/launcher_channel.hpp
struct ExitRequest {
    int pe = -1;  // -1: the process does not know its PE
    int status = 0;
    bool failed = false;
    bool openshmem = false;  // the program uses the names of OpenSHMEM

    friend bool operator==(const ExitRequest&, const ExitRequest&) = default;
};

class ExitRequests {
public:
    // Returns the requests in complete lines. Other lines are dropped, because any program may write to a descriptor
    // that it inherited. Bytes of an unfinished line are kept, up to longest_line.
    std::vector<ExitRequest> take(std::string_view bytes);

private:
    static constexpr std::size_t longest_line = 64;

    std::string rest_;
};

std::optional<ExitRequest> parse_exit_request(std::string_view line);
// Returns the line as the PE wrote it, without its newline.
std::string line_of(const ExitRequest& request);

// How the PEs of one host end for a reason of their own.
struct Outcome {
    int status = 0;
    // Not empty: a PE has exited with the status, maybe because a PE on another host was killed. The job's
    // launcher shows this text if it finds no such PE. The host agent has reported any other reason itself.
    std::string exit;

    friend bool operator==(const Outcome&, const Outcome&) = default;
};

// The text that a record carries.
std::string text_of(const Outcome& outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

}  // namespace npushmem::run
