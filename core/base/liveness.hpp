// SPDX-License-Identifier: BSD-3-Clause
// Detects dead PEs. Every blocking wait checks liveness now and then, so no wait outlives the PE it depends on.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// A range of world PEs: first, first + stride, ... (`count` of them), or the first `count` entries of `table`, which
// must outlive the range. Empty: no PE.
struct PeRange {
    int first = 0;
    int stride = 1;
    int count = 0;
    const int* table = nullptr;

    static PeRange one(int pe) { return {pe, 1, 1}; }
    static PeRange of(std::span<const int> pes) { return {.count = static_cast<int>(pes.size()), .table = pes.data()}; }
    [[nodiscard]] int at(int index) const { return table == nullptr ? first + index * stride : table[index]; }

    // The PEs in order, while the range exists.
    class Iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = int;
        using reference = int;
        using pointer = void;
        using difference_type = std::ptrdiff_t;

        Iterator() = default;
        Iterator(const PeRange* range, int index) : range_(range), index_(index) {}
        int operator*() const { return range_->at(index_); }
        Iterator& operator++() {
            ++index_;
            return *this;
        }
        Iterator operator++(int) { return {range_, index_++}; }
        bool operator==(const Iterator&) const = default;

    private:
        const PeRange* range_ = nullptr;
        int index_ = 0;
    };
    [[nodiscard]] Iterator begin() const { return {this, 0}; }
    [[nodiscard]] Iterator end() const { return {this, count}; }
};

class Liveness {
public:
    Liveness() = default;
    Liveness(const Liveness&) = delete;
    Liveness& operator=(const Liveness&) = delete;
    virtual ~Liveness() = default;

    // Returns the PE to report when one of `pes` is known to be dead: the first dead one in their order, or the PE
    // whose exit caused it to exit. A PE of unknown state counts as alive. May cost microseconds per PE; waits call it
    // at growing intervals. Any thread may call it.
    virtual std::optional<int> find_dead(const PeRange& pes) = 0;
};

// Identifies one process uniquely: the kernel reuses process numbers, but not a number with its start time.
struct ProcessId {
    pid_t pid = 0;
    std::uint64_t start = 0;  // clock ticks since boot, field 22 of /proc/<pid>/stat

    bool operator==(const ProcessId&) const = default;
};

struct ProcessStat {
    char state = '?';  // field 3: R, S, D, Z (zombie), X (dead), ...
    std::uint64_t start = 0;
};

// Parses the content of /proc/<pid>/stat; nothing when it is malformed. The command name may contain blanks and
// brackets.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Returns the identity of a running process, for use by its peers; nothing when there is no such process.
std::optional<ProcessId> identify_process(pid_t pid);
ProcessId this_process();

// Returns whether there is a process of this number, be it a zombie. Costs less than 1 us.
bool kernel_knows(pid_t pid);

// Returns whether the process still runs. A zombie does not: it will never write again. Where /proc cannot be read, the
// process counts as alive unless the kernel reports that it does not exist. Costs about 10 us.
bool is_alive(const ProcessId& process);

// Returns the numbers of all processes in this PID namespace, in the kernel's order; nothing where /proc cannot be
// read.
std::vector<pid_t> list_processes();

// Returns a descriptor that becomes readable when the process ends. It uses the system call because the C library's
// declaration lacks C linkage in Debian 12. Not open, with errno set, when there is no such process or no descriptor
// left.
FileDescriptor open_pidfd(pid_t pid);

// Takes turns at checks that one process makes on behalf of all that share this. In memory that is zero at first.
class SharedTurn {
public:
    // Returns true to one caller in each interval. Clocks of different time namespaces differ, so a caller whose clock
    // is an interval behind the last turn takes one too.
    bool take(std::chrono::steady_clock::time_point now, std::chrono::nanoseconds interval);

private:
    std::atomic<std::int64_t> last_{0};  // since the epoch of the clock; 0: nobody has taken a turn
};

// Checks PEs whose processes are visible from here (same host and PID namespace). Each check watches a few more of them
// through pidfds, so that one system call finds the ends of all. It reads /proc for those that it cannot watch.
class ProcessLiveness final : public Liveness {
public:
    // Returns the process of a PE of the job; pid 0: it runs on another host and counts as alive. Any thread.
    using ProcessLookup = std::function<ProcessId(int pe)>;

    // Watches at most `max_watched` processes. `npes` is the number of PEs of the job.
    ProcessLiveness(int npes, ProcessLookup process_of, std::size_t max_watched = affordable_pidfds());

    // A quarter of the descriptors that this process may open, and at most 256.
    static std::size_t affordable_pidfds();

    [[nodiscard]] int npes() const { return npes_; }
    // Returns the process of a PE if it is visible from here, else pid 0, also for numbers that no PE has.
    [[nodiscard]] ProcessId process_of(int pe) const { return pe >= 0 && pe < npes_ ? process_of_(pe) : ProcessId{}; }

    // Detects an exited process at once, and a zombie that is watched. Detecting other zombies and reused numbers
    // requires a read of /proc per PE, so each call checks only some PEs, at a bounded cost, and the next call
    // continues behind them.
    std::optional<int> find_dead(const PeRange& pes) override;

    enum class Depth {
        kernel,  // misses zombies and reused numbers; costs less than 1 us per PE
        proc     // reads /proc for every PE
    };
    // Returns all PEs whose processes have ended, in ascending order.
    [[nodiscard]] std::vector<int> ended(Depth depth) const;

private:
    static constexpr unsigned checks_per_call = 16;

    struct Watched {
        int pe;
        FileDescriptor pidfd;  // not open: the process has ended
    };

    // Returns null for a PE that is not watched.
    [[nodiscard]] Watched* find(int pe);
    void read_ends();
    // Returns whether the process is alive, which is watched from now on if the limits allow it.
    bool check(int pe, const ProcessId& process);

    const int npes_;
    const ProcessLookup process_of_;
    const std::size_t max_watched_;
    std::mutex lock_;
    std::vector<Watched> watched_;   // in order of PE; under lock_
    Poller pidfds_;                  // keys: PEs; under lock_
    std::size_t watched_count_ = 0;  // those that have not ended; under lock_
    unsigned next_ = 0;              // where the next walk begins; under lock_
};

// Returns whether the failure of an operation means that its peer is lost, rather than this operation only.
constexpr bool ends_a_peer(Code code) {
    return code == Code::peer_dead || code == Code::unreachable || code == Code::timeout;
}

}  // namespace npushmem
