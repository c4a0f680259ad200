#include "core/tools/run/exit_record.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {

TerminationKind termination_kind(int code) {
    return code == CLD_EXITED   ? TerminationKind::exited
           : code == CLD_DUMPED ? TerminationKind::dumped_core
                                : TerminationKind::killed;
}

std::string describe_termination(const ExitRecord& end) {
    if (end.termination == TerminationKind::exited) return fmt::format("exited with status {}", end.value);
    const char* meaning = ::sigdescr_np(end.value);
    return fmt::format("was killed by signal {} ({}{}{}){}", end.value, signal_name(end.value),
                       meaning == nullptr ? "" : ": ", meaning == nullptr ? "" : meaning,
                       end.termination == TerminationKind::dumped_core ? ", core dumped" : "");
}

int exit_code_of(const ExitRecord& end) {
    return end.termination == TerminationKind::exited ? end.value : exit_signal_base + end.value;
}

std::string signal_name(int signal) {
    const char* abbreviation = ::sigabbrev_np(signal);
    return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string describe(const ExitRecord& end, const std::string& host, int emulated_host) {
    const std::string emulated = emulated_host < 0 ? "" : fmt::format(", emulated host {}", emulated_host);
    return fmt::format("PE {} (pid {}, host {}{}) {}", end.pe, end.pid, host, emulated, describe_termination(end));
}

}  // namespace npushmem::run
