// A rate that several users share over virtual time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace npushmem::npu::time {

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

}  // namespace npushmem::npu::time
