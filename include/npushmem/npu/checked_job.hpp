// SPDX-License-Identifier: BSD-3-Clause
// A job of several PEs in one process and one thread, with every check enabled: finds the errors of a kernel before it
// runs on hardware. The kernel's source stays the same.
//
//   auto job = CheckedJob::create({.pes = 2}).value();
//   auto* data = job->allocate<float>(64);
//   CheckReport report = job->run(1, [&](Core& core) { ... job->at(core.my_pe(), data) ... });
//   if (!report.clean()) std::puts(report.text().c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/npu/device_config.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu {

// Determines when queued commands run, when signals arrive, and how cores take turns.
//   eager            at once, and cores run until they wait
//   lazy             commands and signals to other PEs only when something forces them; a core that polls goes on alone
//                    for 256 polls of each source line, and others run between its load and its store of a word
//   random:<seed>    drawn; the same seed gives the same run
//   explore          every schedule, up to the order of steps that commute
//   explore:<d>      every schedule with at most d deviations from the default order
//   replay:<trace>   the schedule that the report of an exploration names
//
// Explored schedules consist of steps. A step is one access of a core to memory, one command of a pipe, or the arrival
// of one signal at another PE. In the default order a core, pipe or signal continues until it waits or ends, then the
// next one continues. Each other choice is a deviation.
//
// A wait may end in two ways, and both are explored. A loop that has repeated 16 reads and found nothing new waits
// until another core writes what it reads, or repeats its reads alone until it ends, at most 4096 times; schedules that
// differ only in the number of these reads count as one. A signal_wait_for sees its value or times out. The other
// schedules let it time out when no core can run any more.
struct Schedule {
    enum class Kind : unsigned char { eager, lazy, random, explore, replay };

    Kind kind = Kind::lazy;
    std::uint64_t seed = 0;
    std::string trace = {};                   // of replay: "<step>=<thread>,..."
    int deviations = -1;                      // maximum of explore; -1: any number
    std::uint64_t max_schedules = 1'000'000;  // maximum number of schedules to explore, at least 1
    std::uint64_t max_steps = 1'000'000;      // of one schedule of explore or replay; a longer run is a finding (H17)

    // Accepts the forms above. Returns Code::config, with the valid forms, for any other text.
    NPUSHMEM_NPU_EXPORT static Result<Schedule> parse(std::string_view text);
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

struct CheckReport {
    std::vector<Finding> findings;   // findings of the schedule that `schedule` names
    Status status;                   // the first failure of a launch in that schedule
    std::string schedule;            // reproduces this run
    std::uint64_t schedules = 0;     // number of schedules that were run, before a failing one was minimised
    std::uint64_t redundant = 0;     // number of these that turned out to repeat others
    std::uint64_t steps = 0;         // number of steps of all of them
    std::uint64_t minimised_by = 0;  // number of further runs that searched for fewer deviations
    std::uint64_t deviations = 0;    // of `schedule`, when it is a replay
    std::string coverage;            // of an exploration without a finding: "all schedules", or how many
    // Whether all schedules that were asked for were run. False for an exploration with a finding, which ends with it,
    // or with a kernel that depends on more than the schedule, or with too small a budget, and for a launch that was
    // rejected.
    bool complete = true;
    bool repeated = true;  // false: another run of the failing schedule did not fail in this way
    double seconds = 0;
    std::uint64_t remote_signals = 0;  // signals to other PEs, from all cores of all PEs
    std::uint64_t remote_waits = 0;    // waits for and fetches of words of other PEs

    // Whether there are no errors; hints do not count.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT bool clean() const;
    // The whole report as readable text.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

struct CheckedJobConfig {
    int pes = 1;
    std::size_t heap_bytes = 1 << 20;  // bytes of symmetric memory per PE
    DeviceConfig device{};             // the device of each PE; its hooks are ignored
    Schedule schedule{};
    bool check = true;  // false: apply the schedule without checks; explore then finds no alternatives
};

class NPUSHMEM_NPU_EXPORT CheckedJob {
public:
    using Where = SourceLocation;
    using Kernel = std::function<void(Core&)>;

    // Returns Code::config for a value out of range, or Code::memory.
    static Result<std::unique_ptr<CheckedJob>> create(const CheckedJobConfig& config);
    CheckedJob(const CheckedJob&) = delete;
    CheckedJob& operator=(const CheckedJob&) = delete;
    ~CheckedJob();

    // Allocates `count` zeroed elements on all PEs, in whole lines of 64 bytes. Returns PE 0's address. Throws
    // std::bad_alloc when the heap is full.
    template <class T>
    T* allocate(std::size_t count, const Where& where = Where::current()) {
        void* first = nullptr;
        for (int pe = pes(); pe-- > 0;) first = allocate_on(pe, count * sizeof(T), where);
        return static_cast<T*>(first);
    }
    // Allocates `bytes` on one PE. The next run reports a finding unless all PEs allocate the same sizes in the same
    // order.
    void* allocate_on(int pe, std::size_t bytes, const Where& where = Where::current());
    // Frees the allocation that begins at `of_pe_0` on all PEs. The memory is never allocated again, so that every
    // later use is found.
    void release(void* of_pe_0);

    // Address of `pe`'s copy of the object at PE 0's address `of_pe_0`.
    template <class T>
    [[nodiscard]] T* at(int pe, T* of_pe_0) const {
        return static_cast<T*>(copy_of(pe, const_cast<std::remove_const_t<T>*>(of_pe_0)));
    }
    [[nodiscard]] int pes() const;

    // `reset` runs before each schedule of a run. It resets the state that kernels keep outside symmetric memory.
    void before_each(std::function<void()> reset);

    // Runs the kernel on all PEs at once. Each explored schedule starts from the same memory; the memory of the last
    // one remains. `blocks_of(pe)` gives each PE its own number of blocks.
    //
    // An exploration ends with the first schedule that has a finding, and searches for one with the same finding and
    // fewer deviations. It knows the accesses that kernels make through Core. Kernels must not depend on anything else
    // that changes from run to run, such as the time; state that cores share in host memory orders nothing.
    CheckReport run(const LaunchConfig& launch, const Kernel& kernel);
    CheckReport run(const LaunchConfig& launch, const std::function<int(int pe)>& blocks_of, const Kernel& kernel);

private:
    class Impl;
    explicit CheckedJob(std::unique_ptr<Impl> parts);
    [[nodiscard]] void* copy_of(int pe, void* of_pe_0) const;

    std::unique_ptr<Impl> impl_;
};

}  // namespace npushmem::npu
