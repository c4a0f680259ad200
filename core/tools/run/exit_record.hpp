// Ends of PEs: exit statuses, records of ends, requests of PEs to end the job, and the outcome on one host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::run {

// What the launcher's own exit status means; a failed PE's status is passed on instead.

constexpr int exit_usage = 2;              // a mistake on the command line
constexpr int exit_calls_failed = 123;     // of a host agent: calls failed and nothing else
constexpr int exit_timeout = 124;          // --timeout has passed
constexpr int exit_launcher_failed = 125;  // the launcher itself could not do its work
constexpr int exit_not_executable = 126;   // the program is there but cannot be run
constexpr int exit_not_found = 127;        // there is no such program
constexpr int exit_signal_base = 128;      // plus the signal's number

// How a PE ended, and what the launcher says and returns because of it.
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

// The launcher's exit status when this is the first failure (0 if it is none): the status, or 128 + the signal.
int exit_code_of(const ExitRecord& end);

// "SIGSEGV"; "signal 64" for one without a name.
std::string signal_name(int signal);

// "exited with status 3" or "was killed by signal 11 (...)".
std::string describe_termination(const ExitRecord& end);

// "PE 3 (pid 77, host a, emulated host 1) was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped".
// `emulated_host` is -1 for none.
std::string describe(const ExitRecord& end, const std::string& host, int emulated_host);

// What PEs tell the launcher: lines on a pipe whose writing end every PE inherits.
//     exit <pe> <status>     npushmem_global_exit(status) was called
//     exit <pe> <status> shmem    the same, by its name in OpenSHMEM
//     failed <pe> <status>   the library cannot serve the PE any more; it has said why
//     wake                   a record was appended to the log of core/base/launcher_channel.hpp
struct ExitRequest {
    int pe = -1;  // -1: it does not know
    int status = 0;
    bool failed = false;
    bool openshmem = false;  // the program uses the names of OpenSHMEM

    friend bool operator==(const ExitRequest&, const ExitRequest&) = default;
};

class ExitRequests {
public:
    // Complete lines that have come; what is no request is dropped, for any program may write into a descriptor that it
    // inherited. Bytes of an unfinished line are kept, up to a line's longest length.
    std::vector<ExitRequest> take(std::string_view bytes);

private:
    static constexpr std::size_t longest_line = 64;

    std::string rest_;
};

std::optional<ExitRequest> parse_exit_request(std::string_view line);
// The line without its end, as the PE wrote it.
std::string line_of(const ExitRequest& request);

// How the PEs of one host end for a reason of their own: a pure value.
struct Outcome {
    int status = 0;
    // Not empty: a PE has exited with the status, maybe because a PE on another host was killed. The launcher of the
    // whole job shows this text if it finds no such PE. The host agent has reported any other reason itself.
    std::string exit;

    friend bool operator==(const Outcome&, const Outcome&) = default;
};

// As a record carries it.
std::string text_of(const Outcome& outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

}  // namespace npushmem::run
