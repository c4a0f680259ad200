// A job of several PEs inside one process and one thread, with everything checked: for finding what is wrong with a
// kernel before it runs on hardware. The kernel's source is the one that runs elsewhere.
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
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/npu/device_config.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu {

// When queued commands run, signals arrive, and cores take turns.
//   eager           at once, and cores run until they wait
//   lazy            commands and signals to other PEs only when something forces them
//   random:<seed>   drawn; the same seed gives the same run
//   explore[:<d>]   all schedules that differ from eager in at most d places (1 when not given), where at each place a
//                   core, a command or a signal is set aside until nothing else can go on
struct Schedule {
    enum class Kind : unsigned char { eager, lazy, random, explore };

    Kind kind = Kind::lazy;
    std::uint64_t seed = 0;
    int deferrals = 1;
    std::uint64_t max_schedules = 1'000'000;  // schedules to explore at most

    // The forms above. Code::config with the forms that exist.
    NPUSHMEM_NPU_EXPORT static Result<Schedule> parse(std::string_view text);
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

struct CheckReport {
    std::vector<Finding> findings;  // of the schedule that `schedule` names
    Status status;                  // the first launch that failed, in that schedule
    std::string schedule;           // how to run the same again
    std::uint64_t schedules = 0;    // that were run
    bool complete = true;           // false: `max_schedules` ended the exploration
    double seconds = 0;
    std::uint64_t remote_signals = 0;  // sent to other PEs, by all cores of all PEs
    std::uint64_t remote_waits = 0;    // waits for, and fetches of, words of other PEs

    // No errors; hints do not count.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT bool clean() const;
    // Everything found, for a person to read.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

struct CheckedJobConfig {
    int pes = 1;
    std::size_t heap_bytes = 1 << 20;  // of symmetric memory per PE
    DeviceConfig device{};             // of each PE; its hooks are ignored
    Schedule schedule{};
    bool check = true;  // false: only the schedule, as fast mode runs; explore finds no places then
};

class NPUSHMEM_NPU_EXPORT CheckedJob {
public:
    using Where = std::source_location;
    using Kernel = std::function<void(Core&)>;

    // Code::config for what is out of range, Code::memory.
    static Result<std::unique_ptr<CheckedJob>> create(const CheckedJobConfig& config);
    CheckedJob(const CheckedJob&) = delete;
    CheckedJob& operator=(const CheckedJob&) = delete;
    ~CheckedJob();

    // Zeroed symmetric memory on all PEs, by lines of 64 bytes; PE 0's address. Throws std::bad_alloc when the heap is
    // full.
    template <class T>
    T* allocate(std::size_t count, const Where& where = Where::current()) {
        void* first = nullptr;
        for (int pe = pes(); pe-- > 0;) first = allocate_on(pe, count * sizeof(T), where);
        return static_cast<T*>(first);
    }
    // On one PE; the next run reports it when the others do not allocate the same in the same order.
    void* allocate_on(int pe, std::size_t bytes, const Where& where = Where::current());
    // Frees what begins there on all PEs. Never given out again, so that every later use is found.
    void release(void* of_pe_0);

    // `pe`'s copy of what PE 0 has at this address.
    template <class T>
    [[nodiscard]] T* at(int pe, T* of_pe_0) const {
        return static_cast<T*>(copy_of(pe, const_cast<std::remove_const_t<T>*>(of_pe_0)));
    }
    [[nodiscard]] int pes() const;

    // Called before each schedule that a run tries: to reset what kernels keep outside of symmetric memory.
    void before_each(std::function<void()> reset);

    // Runs the kernel on every PE at once, from the same memory under each schedule explored, and leaves the memory of
    // the last. `blocks_of(pe)` when PEs shall differ.
    CheckReport run(const LaunchConfig& launch, const Kernel& kernel);
    CheckReport run(const LaunchConfig& launch, const std::function<int(int pe)>& blocks_of, const Kernel& kernel);

private:
    class Impl;
    explicit CheckedJob(std::unique_ptr<Impl> parts);
    [[nodiscard]] void* copy_of(int pe, void* of_pe_0) const;

    std::unique_ptr<Impl> impl_;
};

}  // namespace npushmem::npu
