// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "npushmem/npu/device_model.hpp"
#include "npushmem/npu/pipe.hpp"

namespace npushmem::npu::time {

// A rate that several users share over virtual time. Time is divided into slots; a transfer takes the free capacity of
// the slots from its start on. Users may call in any order of their virtual times: a transfer that starts later leaves
// the earlier slots free.
class SharedBandwidth {
public:
    // `rate`: bytes per nanosecond.
    explicit SharedBandwidth(double rate) : room_(rate * slot) {}

    // Reserves a transfer of `bytes` that begins at `start` (ns). Returns the time (ns) at which its last byte has
    // passed.
    double reserve(double start, double bytes) {
        passed_ += bytes;
        auto at = static_cast<std::size_t>(start / slot);
        double offset = start - static_cast<double>(at) * slot;
        while (true) {
            if (at >= used_.size()) used_.resize(std::max(at + 1, used_.size() * 2));
            const double usable = std::max(0.0, std::min(room_ - used_[at], room_ * (1 - offset / slot)));
            if (bytes <= usable) {
                used_[at] += bytes;
                // Bytes reserved earlier in this slot pass first.
                return static_cast<double>(at) * slot +
                       std::max(offset + bytes / room_ * slot, used_[at] / room_ * slot);
            }
            used_[at] += usable;
            bytes -= usable;
            ++at;
            offset = 0;
        }
    }

    // Total bytes of all transfers.
    [[nodiscard]] double passed() const { return passed_; }

private:
    static constexpr double slot = 128;  // ns

    double room_;  // capacity of a slot, in bytes
    double passed_ = 0;
    std::vector<double> used_;
};

inline constexpr std::size_t pipes = 4;
constexpr std::size_t index_of(Pipe pipe) { return static_cast<std::size_t>(pipe); }

struct TraceEvent {
    const char* name;
    int pe;
    int core;
    Pipe pipe;
    double begin;
    double end;
};

// A moment within an event of one pipe.
struct TimelinePoint {
    int pe;
    int core;
    Pipe pipe;
    double at;
};

// A word holds `value` from the time `when` on.
struct WordUpdate {
    std::uint64_t value;
    double when;
    TimelinePoint from;                               // the signal, atomic or put that wrote the word
    std::optional<TimelinePoint> put = std::nullopt;  // the put that the signal announces, if there is one
};

// An arrow of the timeline, from an update of a word to the wait that it ended.
struct Flow {
    WordUpdate update;
    TimelinePoint wait;
};

// Virtual-time state that the cores of all PEs share: memory and links, signals in flight, core barriers, trace events.
// Times are nanoseconds since the start. Any thread may call it.
class SimulationState {
public:
    struct Pe {
        double end = 0;    // of the last launch
        double start = 0;  // of the current one
        int cores = 0;
        std::array<double, pipes> busy{};  // busy time of all cores together
        double core_time = 0;
        std::vector<double> barrier_arrivals;  // of the current launch: arrival time of the last core
    };

    explicit SimulationState(const DeviceModel& given) : model(given) {}

    const DeviceModel model;

    // Returns the start time of the launch. The call of the first core starts a new launch.
    double begin(int pe, int core, int cores);
    void end(int pe, double begin, double end);
    // Return the time at which a transfer that starts at `begin` has passed global memory, or the link between two PEs.
    double memory(int pe, double begin, double bytes);
    double link(int from, int to, double begin, double bytes);
    [[nodiscard]] double latency(int from, int to) const;
    // Replaces the last update of `word`. Memory: one update per word that is ever signalled.
    void update(const void* word, const WordUpdate& update);
    // The same for the bytes of a put, which may be data that nobody waits for: words beyond the first million are
    // ignored.
    void update_by_put(const void* word, const WordUpdate& update);
    // The update that gave `word` the value `seen`; nothing if another value was written later, or the writer is
    // unknown.
    [[nodiscard]] std::optional<WordUpdate> find_update(const void* word, std::uint64_t seen) const;
    // arrive: records the time at which a core reached core barrier number `barrier_index` of the launch. barrier_end:
    // the time at which the last core reached it.
    void arrive(int pe, std::size_t barrier_index, double when);
    [[nodiscard]] double barrier_end(int pe, std::size_t barrier_index) const;
    // `idle`: the pipe only waited; the time does not count as busy.
    void record(const TraceEvent& event, bool idle = false);
    // Records a wait, and the flow from the update that ended it. There is no flow if the value was there before the
    // wait began, or if the timeline is full.
    void record_wait(const TraceEvent& wait, const std::optional<WordUpdate>& update);

    [[nodiscard]] std::map<int, Pe> pes() const;
    // Bytes per direction of each link; the keys {PE, -1} and {-1, PE} are ports to the switch.
    [[nodiscard]] std::map<std::pair<int, int>, double> links() const;
    [[nodiscard]] std::vector<TraceEvent> events() const;
    [[nodiscard]] std::vector<Flow> flows() const;

private:
    void record_locked(const TraceEvent& event, bool idle);
    SharedBandwidth& rate(std::map<std::pair<int, int>, SharedBandwidth>& rates, int from, int to, double bytes_per_ns);

    mutable std::mutex lock_;
    std::map<int, Pe> pes_;
    std::map<int, SharedBandwidth> memory_;
    std::map<std::pair<int, int>, SharedBandwidth> links_;  // link directions; {PE, -1}, {-1, PE}: ports to the switch
    std::unordered_map<const void*, WordUpdate> updates_;
    std::vector<TraceEvent> events_;
    std::vector<Flow> flows_;  // at most one per event
};

}  // namespace npushmem::npu::time
