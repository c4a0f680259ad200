// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::fakes {

// The waits of a device when one PE is dead. They check it at once.
class DeadPe final : public npu::WaitPolicy {
public:
    explicit DeadPe(int pe) : pe_(pe) {}

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds /*timeout*/) override {
        return ready() ? Code::ok : Code::timeout;
    }
    void pause(std::uint64_t /*round*/) override {}
    [[nodiscard]] Status peer_status(const npu::PeGroup& pes) const override {
        bool needed = pes.count == 0;
        for (int i = 0; i < pes.count; ++i) needed = needed || pes.at(i) == pe_;
        return needed ? Status{Code::peer_dead, fmt::format("PE {} has died", pe_)} : Status{};
    }

private:
    int pe_;
};

}  // namespace npushmem::fakes
