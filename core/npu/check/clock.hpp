// Vector clocks: for each agent (a pipe of a core), up to which of its accesses the holder is ordered behind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
        if (other.at_.size() > at_.size()) at_.resize(other.at_.size());
        for (std::size_t i = 0; i < other.at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
    }

private:
    int pe_ = -1;
    std::vector<std::uint32_t> at_;
};

}  // namespace npushmem::npu::check
