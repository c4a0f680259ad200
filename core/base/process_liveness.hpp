// Whether the processes of PEs on this host still run.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/liveness.hpp"

namespace npushmem {

// Names one process for good: numbers are used again, number and start together are not.
struct ProcessId {
    pid_t pid = 0;
    std::uint64_t start = 0;  // clock ticks since boot, field 22 of /proc/<pid>/stat

    bool operator==(const ProcessId&) const = default;
};

struct ProcessStat {
    char state = '?';  // field 3: R, S, D, Z (zombie), X (dead), ...
    std::uint64_t start = 0;
};

// The content of /proc/<pid>/stat; nothing when it has not its shape. The command in it may hold blanks and brackets.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// The identity of a process that runs now, to be given to its peers; nothing when there is no such process.
std::optional<ProcessId> identify_process(pid_t pid);
ProcessId this_process();

// Runs it still? A zombie does not: it will never write again. Where /proc cannot be read, the process counts as alive
// unless the kernel says that no such process exists. Costs about 10 us.
bool is_alive(const ProcessId& process);

// For PEs whose processes are visible from here (same host and PID namespace).
class ProcessLiveness final : public Liveness {
public:
    // `processes[pe]` for every PE; pid 0 where the process is not on this host, which counts as alive.
    explicit ProcessLiveness(std::vector<ProcessId> processes) : processes_(std::move(processes)) {}

    [[nodiscard]] int npes() const { return static_cast<int>(processes_.size()); }

    // Processes that are gone are found at once. Zombies and reused numbers take a look into /proc each, so a call
    // looks at some PEs only and the next one goes on behind them: all are seen after a few calls, at a bounded cost of
    // each.
    std::optional<int> find_dead(const PeRange& pes) override;

private:
    static constexpr unsigned checks_per_call = 16;

    [[nodiscard]] const ProcessId* process_of(int pe) const;

    std::atomic<unsigned> next_{0};
    const std::vector<ProcessId> processes_;  // by PE of the world
};

}  // namespace npushmem
