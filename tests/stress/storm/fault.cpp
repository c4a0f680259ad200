// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/fault.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <random>

namespace npushmem::storm {

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {"kill", Effect::ends_pe, 128 + SIGKILL},
        {"segv", Effect::ends_pe, 128 + SIGSEGV},
        {"term", Effect::ends_pe, 128 + SIGTERM},
        {"abort", Effect::ends_pe, 128 + SIGABRT},
        {"exit3", Effect::ends_pe, 3},
        {"_exit3", Effect::ends_pe, 3},
        {"handler3", Effect::ends_pe, 3},
        {"exit0", Effect::leaves, -1},
        {"_exit0", Effect::leaves, -1},
        {"handler0", Effect::leaves, -1},
        {"two-kills", Effect::ends_pe, 128 + SIGKILL},
        {"survive-kill", Effect::survived, 128 + SIGKILL},
        {"survive-exit3", Effect::survived, 3},
        {"survive-two-kills", Effect::survived, 128 + SIGKILL},
        {"stop-continue", Effect::stops, 0},
        {"stop-kill", Effect::ends_pe, 128 + SIGKILL},
        {"launcher-kill", Effect::ends_launcher, -1},
        {"launcher-term", Effect::interrupts, 128 + SIGTERM},
        {"launcher-int", Effect::interrupts, 128 + SIGINT},
        {"supervisor-kill", Effect::ends_supervisor, 125},
        {"all-kill", Effect::ends_launcher, -1},
        {"cut", Effect::may_fail, -1},
        {"pe-descriptors", Effect::may_fail, -1},
        {"pe-memory", Effect::may_fail, -1},
        {"pe-file-size", Effect::may_fail, -1},
        {"descriptors", Effect::may_fail, -1, true},
        {"memory", Effect::may_fail, -1, true},
        {"processes", Effect::may_fail, -1, true},
        {"file-size", Effect::may_fail, -1, true},
        {"shm-tiny", Effect::may_fail, -1, true},
        {"shm-read-only", Effect::may_fail, -1, true},
        {"disk-full", Effect::may_fail, -1, true},
        {"no-proc", Effect::may_fail, -1, true},
    };
    return all;
}

const std::vector<std::string>& points() {
    static const std::vector<std::string> all{
        "before-init", "start: logging", "start: bootstrap", "start: exchange of PE records", "start: symmetric memory",
        "start: transports", "start: remote transports", "start: NIC assignment",
        "start: choice of the remote transport", "start: exchange of endpoints", "start: transport map",
        "start: mapping of peers", "start: world team", "start: start report",
        // calls of the program
        "malloc", "put", "barrier", "get", "atomic", "signal", "wait", "reduce", "lock", "team", "quiet", "free",
        // the end
        "before-finalize", "finalize: kernels", "finalize: last barrier", "finalize: departure", "after-finalize"};
    return all;
}

bool is_before_first_call(std::string_view point) { return point == "before-init" || point.starts_with("start: "); }

std::string Fault::text() const {
    std::string out =
        fmt::format("{} under {} with {} PEs over {}", kind->name, launcher->name, npes, transports->name);
    for (const auto& victim : victims)
        out += fmt::format(", PE {} at '{}'{}", victim.pe, victim.point,
                           victim.delay_us > 0 ? fmt::format(" + {} us", victim.delay_us) : "");
    return amount > 0 ? out + fmt::format(", amount {}", amount) : out;
}

namespace {

class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t number) : engine_(seed * 0x9e3779b97f4a7c15U + number) {}
    // From 0 to below `count`; the same on every machine.
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
    template <class T>
    const T& one_of(const std::vector<T>& values) {
        return values[below(values.size())];
    }

private:
    std::mt19937_64 engine_;
};

bool fits(const Fault& fault) {
    const std::string_view kind = fault.kind->name;
    if (fault.transports->needs_run && !fault.launcher->emulates_hosts) return false;
    // Programs of others report and end as they like.
    const bool of_our_launcher = kind.starts_with("launcher") || kind.starts_with("supervisor") ||
                                 kind.starts_with("survive") || fault.kind->whole_job;
    return fault.launcher->is_ours || !of_our_launcher;
}

Fault draw(const Surroundings& surroundings, Dice& dice) {
    static constexpr std::array<int, 4> scales{100, 1000, 5000, 30000};
    Fault fault;
    fault.kind = &dice.one_of(kinds());
    fault.launcher = &dice.one_of(surroundings.launchers);
    fault.transports = &dice.one_of(surroundings.transports);
    fault.npes = 2 + static_cast<int>(dice.below(4));
    const std::string_view kind = fault.kind->name;
    // The death of a host's last PE is found by its silence only, which takes the transport's peer timeout.
    const bool keeps_hosts = fault.kind->effect == Effect::survived && fault.transports->needs_run;
    if (keeps_hosts) fault.npes = std::max(fault.npes, 4);
    const std::size_t between_victims = keeps_hosts ? static_cast<std::size_t>(fault.npes) / 2 : 1;
    fault.amount =
        fault.kind->whole_job || fault.kind->effect == Effect::may_fail || fault.kind->effect == Effect::stops
            ? 1 + static_cast<int>(dice.below(64))
            : 0;
    const std::size_t first = dice.below(static_cast<std::size_t>(fault.npes));
    const std::size_t victims = fault.kind->whole_job ? 0 : kind.ends_with("two-kills") ? 2 : 1;
    // A lower limit of file sizes later than at the start kills a process by definition.
    const bool at_start = kind == "pe-file-size";
    for (std::size_t i = 0; i < victims; ++i) {
        const int scale = scales[dice.below(scales.size())];
        const bool exact = dice.below(2) == 0 || at_start;
        fault.victims.push_back({static_cast<int>((first + i * between_victims) % static_cast<std::size_t>(fault.npes)),
                                 at_start ? points().front() : dice.one_of(points()),
                                 exact ? 0 : 1 + static_cast<int>(dice.below(static_cast<std::size_t>(scale)))});
    }
    return fault;
}

}  // namespace

Fault choose_fault(const Surroundings& surroundings, std::uint64_t seed, std::uint64_t number, std::string_view only) {
    Dice dice(seed, number);
    for (;;) {
        Fault fault = draw(surroundings, dice);
        if (fits(fault) && fault.text().find(only) != std::string::npos) return fault;
    }
}

}  // namespace npushmem::storm
