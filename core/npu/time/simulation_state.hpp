#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "npushmem/npu/device_model.hpp"
#include "npushmem/npu/pipe.hpp"

namespace npushmem::npu::time {

// A rate that several users share over virtual time.
// Time is divided into slots; a transfer takes what is free in the slots from its beginning on. Users may come in any
// order of their virtual times: a later transfer that was asked for first leaves the slots before it free.
class SharedBandwidth {
public:
    // In bytes per nanosecond.
    explicit SharedBandwidth(double rate) : room_(rate * slot) {}

    // When the last of `bytes` has passed, of a transfer that begins at `start` (ns).
    double reserve(double start, double bytes) {
        passed_ += bytes;
        auto at = static_cast<std::size_t>(start / slot);
        double offset = start - static_cast<double>(at) * slot;
        while (true) {
            if (at >= used_.size()) used_.resize(std::max(at + 1, used_.size() * 2));
            const double usable = std::max(0.0, std::min(room_ - used_[at], room_ * (1 - offset / slot)));
            if (bytes <= usable) {
                used_[at] += bytes;
                // What was there before passes first, if it was asked for in this slot.
                return static_cast<double>(at) * slot +
                       std::max(offset + bytes / room_ * slot, used_[at] / room_ * slot);
            }
            used_[at] += usable;
            bytes -= usable;
            ++at;
            offset = 0;
        }
    }

    // Bytes of all transfers.
    [[nodiscard]] double passed() const { return passed_; }

private:
    static constexpr double slot = 128;  // ns

    double room_;  // bytes of a slot
    double passed_ = 0;
    std::vector<double> used_;
};

// What the cores of all PEs share in virtual time: memory and links, signals in flight, core barriers, the event
// record. Times are nanoseconds since the beginning. Any thread.
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

class SimulationState {
public:
    struct Pe {
        double end = 0;    // of the last launch
        double start = 0;  // of the current one
        int cores = 0;
        std::array<double, pipes> busy{};  // of all cores together
        double core_time = 0;
        std::vector<double> barrier_arrivals;  // of the current launch: when the last core came
    };

    explicit SimulationState(const DeviceModel& given) : model(given) {}

    const DeviceModel model;

    // The first core of a launch begins it; when it begins.
    double begin(int pe, int core, int cores);
    void end(int pe, double begin, double end);
    // When a transfer that begins then has passed global memory; and, when `peer` is another PE, the way to it.
    double memory(int pe, double begin, double bytes);
    double link(int from, int to, double begin, double bytes);
    [[nodiscard]] double latency(int from, int to) const;
    // A value is in a word from `when` on; when the value that was seen there had come, 0: nothing is known of it.
    void signal(const void* word, std::uint64_t value, double when);
    [[nodiscard]] double arrival(const void* word, std::uint64_t seen) const;
    // Records when a core arrived at core barrier number `barrier_index` of the launch; returns when the last one
    // arrived.
    void arrive(int pe, std::size_t barrier_index, double when);
    [[nodiscard]] double barrier_end(int pe, std::size_t barrier_index) const;
    // `idle`: the pipe did nothing but wait.
    void record(const TraceEvent& event, bool idle = false);

    [[nodiscard]] std::map<int, Pe> pes() const;
    // Bytes of each direction of a link; of ports to the switch {PE, -1} and {-1, PE}.
    [[nodiscard]] std::map<std::pair<int, int>, double> links() const;
    [[nodiscard]] std::vector<TraceEvent> events() const;

private:
    struct Signal {
        std::uint64_t value;
        double when;
    };
    SharedBandwidth& rate(std::map<std::pair<int, int>, SharedBandwidth>& rates, int from, int to, double bytes_per_ns);

    mutable std::mutex lock_;
    std::map<int, Pe> pes_;
    std::map<int, SharedBandwidth> memory_;
    std::map<std::pair<int, int>, SharedBandwidth>
        links_;  // directions of links; {PE, -1}, {-1, PE}: ports to the switch
    std::unordered_map<const void*, Signal> signals_;
    std::vector<TraceEvent> events_;
};

}  // namespace npushmem::npu::time
