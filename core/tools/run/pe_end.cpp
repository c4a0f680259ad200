#include "core/tools/run/pe_end.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {

HowEnded how_ended(int code) {
    return code == CLD_EXITED ? HowEnded::exited : code == CLD_DUMPED ? HowEnded::dumped_core : HowEnded::killed;
}

std::string ending_of(const PeEnd& end) {
    if (end.how == HowEnded::exited) return fmt::format("exited with status {}", end.value);
    const char* meaning = ::sigdescr_np(end.value);
    return fmt::format("was killed by signal {} ({}{}{}){}", end.value, signal_name(end.value),
                       meaning == nullptr ? "" : ": ", meaning == nullptr ? "" : meaning,
                       end.how == HowEnded::dumped_core ? ", core dumped" : "");
}

int exit_code_of(const PeEnd& end) { return end.how == HowEnded::exited ? end.value : exit_signal_base + end.value; }

std::string signal_name(int signal) {
    const char* abbreviation = ::sigabbrev_np(signal);
    return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string describe(const PeEnd& end, const std::string& host, int emulated_host) {
    const std::string emulated = emulated_host < 0 ? "" : fmt::format(", emulated host {}", emulated_host);
    return fmt::format("PE {} (pid {}, host {}{}) {}", end.pe, end.pid, host, emulated, ending_of(end));
}

}  // namespace npushmem::run
