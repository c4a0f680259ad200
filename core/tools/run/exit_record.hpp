// How a PE ended, and what the launcher says and returns because of it.
#pragma once

#include <string>

namespace npushmem::run {

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

}  // namespace npushmem::run
