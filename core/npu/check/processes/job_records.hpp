// SPDX-License-Identifier: BSD-3-Clause
// What the checkers of all PEs of a job record together, in memory that their processes share: who accessed which
// symmetric memory, which clocks its words pass on, and which launches run or have ended.
//
// A process that ends while it writes here switches the records off for all processes: the records may be broken, so
// no finding is reported from them.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/npu/check/memory/gm_shadow.hpp"
#include "core/npu/check/processes/shared_arena.hpp"
#include "npushmem/npu/checked_hooks.hpp"
#include "npushmem/npu/kernel_event.hpp"

namespace npushmem::npu::check {

template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;
using SharedText = std::basic_string<char, std::char_traits<char>, SharedAllocator<char>>;
using SharedClock = SharedVector<std::uint32_t>;

// Raises `clock` to `other`.
void join(SharedClock& clock, const SharedClock& other);

// A host barrier is a barrier of all PEs that their host programs enter; host barriers are numbered.
struct JobContent {
    // A write of a word, which may pass on the clock of its writer.
    struct Release {
        bool exists = false;
        std::uint64_t value = 0;  // of the word, afterwards
        SharedClock clock;
        bool unrecorded = false;
    };
    // The last writes, the youngest first.
    using Word = std::array<Release, 3>;

    // The cores of a PE that one launch at a time uses.
    struct Cores {
        int pe = -1;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        bool running = false;
        std::uint64_t begun = 0;  // the last host barrier when the launch was queued
    };
    struct Ended {
        int pe = -1;
        std::uint64_t begun = 0;
        std::uint64_t before = 0;  // the first host barrier that the PE entered after the launch
        bool unrecorded = false;   // Clock::unrecorded
        SharedClock clock;
    };
    struct Text {
        SharedText what;
        SharedText where;
    };
    // The first call of a PE for a generation of a team's barrier.
    struct BarrierCall {
        int pe = -1;
        int core = -1;             // Core::index
        std::uint32_t launch = 0;  // the first core of the launch
        std::uintptr_t state = 0;  // its offset in the memory of every PE
        std::uint64_t generation = 0;
        int start = 0;
        int stride = 0;
        int size = 0;
        int radix = 0;
        int cores = 0;
        std::uint32_t text = 0;          // the variant and the line
        std::uint64_t ended_before = 0;  // Ended::before of its launch; 0: it has not ended
    };

    // A KernelEvent. Its memory is named by places in the job; 0: not symmetric.
    struct Event {
        KernelEvent::Kind kind;
        Pipe pipe;
        Pipe to;
        std::uint32_t text;
        std::uint32_t issued;
        std::uint64_t number;
        std::uint64_t landed;
        std::uint64_t value;
        std::uint64_t times;
        std::uintptr_t read;
        std::uint64_t read_bytes;
        std::uintptr_t written;
        std::uint64_t written_bytes;
    };
    // Of one core: the last ones, in no particular order.
    using Events = SharedVector<Event>;

    // The last flag of a core from MTE3 to another pipe than S.
    struct SidewaysFlag {
        std::uint32_t issued = 0;
        std::uint32_t text = 0;
    };

    SharedGmShadow memory;
    std::unordered_map<std::uintptr_t, Word, std::hash<std::uintptr_t>, std::equal_to<>,
                       SharedAllocator<std::pair<const std::uintptr_t, Word>>>
        words;
    SharedVector<Cores> cores;
    SharedVector<Ended> ended;
    SharedVector<Text> texts;
    SharedVector<BarrierCall> barrier_calls;
    std::unordered_map<std::uint32_t, Events, std::hash<std::uint32_t>, std::equal_to<>,
                       SharedAllocator<std::pair<const std::uint32_t, Events>>>
        events;  // by core
    std::unordered_map<std::uint32_t, SidewaysFlag, std::hash<std::uint32_t>, std::equal_to<>,
                       SharedAllocator<std::pair<const std::uint32_t, SidewaysFlag>>>
        sideways_flags;  // by core
    std::uint32_t next_core = 0;
    bool kernel_failed = false;  // its unfinished actions are unknown

    // At least `count` cores for a launch: those that an ended launch of the PE used, or new ones.
    Cores& acquire_cores(int pe, std::uint32_t count);
    // Null: no launch has used that core.
    [[nodiscard]] Cores* cores_with(std::uint32_t core);
    void add_ended(Ended launch);
    // Every launch has ended and every PE has entered a host barrier since: nothing here can be unordered with an
    // access in a launch that begins after `host_barrier`.
    [[nodiscard]] bool outdated(std::uint64_t host_barrier) const;
};

class JobRecords {
public:
    static constexpr std::uint64_t header_bytes = 4096;
    static constexpr std::uint64_t bytes = 64ULL << 20;
    // The part that has pages from the beginning.
    static constexpr std::uint64_t first_bytes = SharedArena::unit;

    // The memory behind the descriptor, of `bytes` zeros or with the records that another process made, at its address
    // in this process. Null: the address is not free. Unmapped with the last owner.
    static std::shared_ptr<JobRecords> map(int descriptor);
    JobRecords();
    JobRecords(const JobRecords&) = delete;
    JobRecords& operator=(const JobRecords&) = delete;
    // For the process that made the memory, before the others map it.
    static bool make(int descriptor);

    [[nodiscard]] bool off() const { return off_.load(std::memory_order_relaxed); }
    void switch_off() { off_.store(true, std::memory_order_relaxed); }
    // Under the lock, and while the records are not off.
    [[nodiscard]] JobContent& content() { return *content_; }
    void clear();

    // Counts what happens to the memory of all PEs. Relaxed: the lock orders what the numbers are compared for.
    [[nodiscard]] Stamp version() const { return version_.load(std::memory_order_relaxed); }
    Stamp next_version() { return version_.fetch_add(1, std::memory_order_relaxed) + 1; }
    // Numbers the events of all PEs. Relaxed: likewise.
    std::uint64_t next_event() { return events_.fetch_add(1, std::memory_order_relaxed) + 1; }

private:
    friend class JobLock;

    pthread_mutex_t mutex_;
    std::atomic<bool> off_{false};
    std::atomic<Stamp> version_{1};
    std::atomic<std::uint64_t> events_{0};
    JobContent* content_ = nullptr;
};

// A thread may hold several at once.
class JobLock {
public:
    explicit JobLock(JobRecords& records);
    JobLock(JobLock&& other) noexcept : records_(std::exchange(other.records_, nullptr)) {}
    JobLock& operator=(JobLock&& other) noexcept {
        std::swap(records_, other.records_);
        return *this;
    }
    ~JobLock();

private:
    JobRecords* records_;
};

// Connects the checker of a PE with those of the other processes of its job, and with what their host programs do.
class JobLink {
public:
    JobLink() = default;
    JobLink(const JobLink&) = delete;
    JobLink& operator=(const JobLink&) = delete;
    virtual ~JobLink() = default;

    [[nodiscard]] virtual JobRecords& records() const = 0;
    // The kernels of every PE are recorded.
    [[nodiscard]] virtual bool complete() const = 0;
    // The number of the last host barrier that this PE has entered.
    [[nodiscard]] virtual std::uint64_t host_barrier() const = 0;
    // Whether a PE's host has called a function, other than a host barrier, that may order something, since it entered
    // that host barrier or a later one.
    [[nodiscard]] virtual bool host_called(int pe, std::uint64_t host_barrier) const = 0;
};

struct StepSharing;

// Where an address lies in the symmetric memory of the job.
struct SymmetricPlace {
    int pe;
    std::uint64_t offset;  // in every PE's
};

// What the checker of a device in a job relies on. The pointers must outlive the device.
struct JobServices {
    const JobLink* link = nullptr;         // null: each process checks for itself
    const StepSharing* sharing = nullptr;  // null: nobody grants the steps of the kernels
    std::string report_path = {};          // where pictures of findings go, see ReportFiles
    // Why the bytes at this offset of a PE's symmetric memory may not be accessed; empty: they may. Null: unknown.
    std::function<std::string(std::uint64_t offset, std::size_t bytes)> refusal = {};
    // Of any address, also of a global variable and of its copies on other PEs; none: it is not symmetric. Null: the
    // window of the fabric has all symmetric memory.
    std::function<std::optional<SymmetricPlace>(std::uintptr_t address)> symmetric_of = {};
};

// Hooks like those of checked_hooks(), for a device of a job.
Result<HooksFactory> job_hooks(const Schedule& schedule, const Fabric& fabric, const JobServices& services);

}  // namespace npushmem::npu::check
