// Vector clocks: for each agent (a pipe of a core), up to which of its accesses the holder is ordered behind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace npushmem::npu::check {

class Clock {
public:
    Clock() = default;
    // What a core of this PE knows.
    explicit Clock(int pe) : pe_(pe) {}

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] std::uint32_t operator[](std::size_t agent) const { return agent < at_.size() ? at_[agent] : 0; }

    void set(std::size_t agent, std::uint32_t to) {
        if (agent >= at_.size()) at_.resize(agent + 1);
        at_[agent] = to;
    }
    void raise(std::size_t agent, std::uint32_t to) { set(agent, std::max((*this)[agent], to)); }
    void join(const Clock& other) {
        join(other.at_);
        unrecorded_ = unrecorded_ || other.unrecorded_;
    }
    void join(std::span<const std::uint32_t> other) {
        if (other.size() > at_.size()) at_.resize(other.size());
        for (std::size_t i = 0; i < other.size(); ++i) at_[i] = std::max(at_[i], other[i]);
    }
    [[nodiscard]] std::span<const std::uint32_t> values() const { return at_; }

    // The holder is ordered behind something that nobody recorded, such as what the host program of a PE did: any
    // access of another PE may come before.
    [[nodiscard]] bool unrecorded() const { return unrecorded_; }
    void set_unrecorded() { unrecorded_ = true; }

private:
    int pe_ = -1;
    bool unrecorded_ = false;
    std::vector<std::uint32_t> at_;
};

}  // namespace npushmem::npu::check
