// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/verdict.hpp"

#include <fmt/ranges.h>

#include <array>
#include <csignal>
#include <regex>

namespace npushmem::storm {
namespace {

class Verdict {
public:
    Verdict(const Fault& fault, const JobResult& result) : fault_(fault), result_(result) {}

    std::vector<std::string> defects() {
        const double seconds = std::chrono::duration<double>(result_.took).count();
        require(!result_.ended_by_storm, fmt::format("the job did not end within {:.1f} s", seconds));
        // A job without a fault takes as long as the machine needs.
        const bool is_slow = result_.took > result_.stall_limit && result_.status != 0 && !result_.ended_by_storm;
        require(!is_slow, fmt::format("the job took {:.1f} s", seconds));
        require(result_.left.empty(), fmt::format("left behind: {}", fmt::join(result_.left, ", ")));
        if (!result_.ended_by_storm) judge_end();
        return std::move(defects_);
    }

private:
    [[nodiscard]] bool all_verified() const { return static_cast<int>(result_.verified.size()) == fault_.npes; }
    [[nodiscard]] bool is_injected() const { return !result_.injected.empty() || fault_.kind->whole_job; }
    [[nodiscard]] bool says(const std::string& text) const { return result_.output.find(text) != std::string::npos; }
    void require(bool good, std::string defect) {
        if (!good) defects_.push_back(std::move(defect));
    }

    void judge_end() {
        const Effect effect = is_injected() ? fault_.kind->effect : Effect::stops;
        const bool may_leave_others = effect == Effect::leaves || effect == Effect::survived;  // judged below
        require(result_.status != 0 || all_verified() || may_leave_others, "false success: a PE did not verify");
        if (effect == Effect::stops)
            require(result_.status == 0, fmt::format("the job failed with status {}", result_.status));
        if (effect == Effect::ends_pe || effect == Effect::survived) judge_ended_pe();
        if (effect == Effect::survived) judge_survivors();
        if (effect == Effect::leaves) judge_left_pe();
        if (effect == Effect::ends_supervisor) judge_status(fault_.kind->status, "the job's supervisor process (pid ");
        // The launcher forwards the signal; the PEs that it ends are reported.
        if (effect == Effect::interrupts) judge_interrupted();
        if (effect == Effect::may_fail) judge_exhausted();
        const bool names_pe = effect == Effect::ends_pe || effect == Effect::leaves || effect == Effect::stops ||
                              effect == Effect::survived;
        if (names_pe && fault_.launcher->reports_deaths) judge_names();
    }

    void judge_status(int expected, const std::string& text) {
        require(result_.status == expected, fmt::format("status {} instead of {}", result_.status, expected));
        require(says(text), fmt::format("no message contains '{}'", text));
    }

    [[nodiscard]] std::string end_of_victim(int pe) const {
        const int status = fault_.kind->status;
        return fmt::format("PE {} (pid {}, ", pe, result_.pids.at(pe)) +
               (status > 128 ? fmt::format("\x01was killed by signal {} ", status - 128)
                             : fmt::format("\x01"
                                           "exited with status {}",
                                           status));
    }

    // "PE 3 (pid 77, host a) was killed by signal 9 ("; the host's name is between the parts.
    [[nodiscard]] bool is_named(int pe) const {
        const std::string text = end_of_victim(pe);
        const auto middle = text.find('\x01');
        for (auto at = result_.output.find(text.substr(0, middle)); at != std::string::npos;
             at = result_.output.find(text.substr(0, middle), at + 1)) {
            const std::string line = result_.output.substr(at, result_.output.find('\n', at) - at);
            if (line.find(text.substr(middle + 1)) != std::string::npos) return true;
        }
        return false;
    }

    void judge_ended_pe() {
        require(result_.status != 0, "false success");
        if (!fault_.launcher->is_ours) return;
        require(result_.status == fault_.kind->status,
                fmt::format("status {} instead of {}", result_.status, fault_.kind->status));
        bool named = false;
        for (const int pe : result_.injected) named = named || is_named(pe);
        require(named, "the launcher does not name the PE and its end");
    }

    // A start fails without the dead; afterwards every living PE verifies its work and finalizes.
    void judge_survivors() {
        for (const Victim& victim : fault_.victims)
            if (result_.injected.contains(victim.pe) && is_before_first_call(victim.point)) return;
        for (const int pe : result_.injected) require(is_named(pe), fmt::format("the death of PE {} is not named", pe));
        for (int pe = 0; pe < fault_.npes; ++pe)
            require(result_.injected.contains(pe) || (result_.verified.contains(pe) && result_.finalized.contains(pe)),
                    fmt::format("PE {} lives but has not {}", pe,
                                result_.verified.contains(pe) ? "finalized" : "verified its work"));
    }

    // The others may have finished before. mpiexec of MPICH ends such a job with status 0; PMI names nobody.
    void judge_left_pe() {
        if (!fault_.launcher->reports_deaths) return;
        const bool others_finished =
            result_.verified.size() + result_.injected.size() >= static_cast<std::size_t>(fault_.npes);
        require(result_.status != 0 || others_finished, "false success");
        if (result_.status == 0) return;
        bool named = false;
        for (const int pe : result_.injected)
            named = named || says(fmt::format("PE {}", pe)) || says(fmt::format("rank {} ", pe)) ||
                    (pe == 0 && says("the rendezvous service at"));  // rank 0 runs it
        require(named, "no message names the PE that left");
    }

    void judge_interrupted() {
        if (result_.status == 0) return;  // it came too late
        require(result_.status == fault_.kind->status,
                fmt::format("status {} instead of {}", result_.status, fault_.kind->status));
    }

    // A message must say what failed; a PE must not crash.
    void judge_exhausted() {
        if (result_.status == 0) return;
        const bool by_us = says("npushmem") || says("storm: ");
        require(by_us || (!fault_.launcher->is_ours && !result_.output.empty()), "no message says what failed");
        static constexpr std::array crashes{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGXFSZ};
        for (const int signal : crashes)
            require(!says(fmt::format("was killed by signal {} ", signal)) && result_.status != 128 + signal,
                    fmt::format("crash by signal {}", signal));
    }

    // The first death that is reported; the others may follow from it. Where host agents end PEs, PEs of other hosts
    // may report these first, and only the launcher's line counts.
    void judge_names() {
        static const std::regex by_launcher(
            "npushmem-run: PE ([0-9]+) \\(pid [0-9]+, [^)]*\\) (was killed|exited with)");
        static const std::regex by_pes(
            "(?:PE|rank) ([0-9]+)( on host [^ ]+| \\(pid [^)]*\\))? (has died|is lost|was killed|closed its)");
        const bool ours = fault_.launcher->is_ours;
        if (ours && fault_.kind->effect == Effect::leaves) return;
        std::smatch found;
        if (!std::regex_search(result_.output, found, ours ? by_launcher : by_pes)) return;
        require(result_.injected.contains(std::stoi(found[1])), fmt::format("wrong name: '{}'", found.str()));
    }

    const Fault& fault_;
    const JobResult& result_;
    std::vector<std::string> defects_;
};

}  // namespace

std::vector<std::string> judge(const Fault& fault, const JobResult& result) { return Verdict(fault, result).defects(); }

std::string_view known_cause(const Fault& fault, const JobResult& result) {
    const std::string_view kind = fault.kind->name;
    const bool has_libfabric = fault.transports->name.find("libfabric") != std::string::npos;
    const auto contains = [&result](const char* text) { return result.output.find(text) != std::string::npos; };
    const bool has_ucx = fault.transports->name.find("ucx") != std::string::npos;
    // UCX reports its own end as "[host:pid:0:pid] pgtable.c:75 Fatal: ..." or "... thread.c:226 Assertion `...'
    // failed".
    const bool ucx_ended = contains("Fatal: ") || contains("Assertion `");
    if (contains("ucs_fatal_error") || (has_ucx && ucx_ended && contains("==== backtrace (tid:")))
        return "an assertion of UCX failed";
    if (kind.starts_with("survive-") && kind.find("exit") != std::string_view::npos &&
        is_before_first_call(fault.victims.front().point) &&
        result.output.find("a PE died in the start") != std::string::npos)
        return "a PE that exits closes its connections first: a PE whose start fails by that may end before it";
    if (result.ended_by_storm && fault.launcher->name == "mpirun.openmpi" &&
        result.output.find("PMIX ERROR: UNREACHABLE") != std::string::npos)
        return "mpirun of Open MPI waits for ever for a process that ended while it connected to the PMIx server";
    if (!result.ended_by_storm && !result.exit_waits_for_libc) return {};
    // A hang report: "PE 1 has waited 4.0 s in ...".
    const bool waits = result.output.find(" has waited ") != std::string::npos ||
                       result.output.find(" have waited ") != std::string::npos;
    if (has_libfabric && kind == "cut" && result.cut && waits)
        return "ofi_rxm connects again and reports no error for the messages that the broken connection lost";
    if (has_libfabric && (kind.ends_with("memory") || kind.ends_with("descriptors")))
        return "libfabric without memory or descriptors returns FI_EAGAIN until the peer timeout or for ever";
    const bool exits = kind.find("exit") != std::string_view::npos || kind.starts_with("handler");
    if (exits && fault.victims.front().delay_us > 0 && result.exit_waits_for_libc)
        return "exit() in a signal handler waits for a lock of the C library that the interrupted code holds";
    return {};
}

}  // namespace npushmem::storm
