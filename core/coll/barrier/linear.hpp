// SPDX-License-Identifier: BSD-3-Clause
// Each member signals member 0 and waits; member 0 waits for all, then releases one after the other. 2(n-1) messages,
// all at member 0: the simplest barrier, and fast for small teams on one node.
//
// Arrivals add to one counter, so the memory does not grow with n. Slots: the counter; and the release, which member 0
// writes for call g+1 only after this member has arrived again. So it needs no parity.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct Linear {
    static constexpr std::string_view name = "linear";
    static constexpr std::string_view summary = "all signal member 0, which releases all: 2(n-1) messages";

    static constexpr int slots(int /*n*/) { return 2; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return call.index == 0 ? lead(fabric, call) : follow(fabric, call);
    }

private:
    template <Fabric F>
    static Code lead(F& fabric, const BarrierCall& call) {
        const auto others = static_cast<std::uint64_t>(call.n - 1);
        Code code = fabric.wait({.member = 0, .slot = call.first_slot}, call.generation * others);
        for (int member = 1; member < call.n && code == Code::ok; ++member)
            code = fabric.signal(member, call.first_slot + 1, call.generation);
        return code;
    }

    template <Fabric F>
    static Code follow(F& fabric, const BarrierCall& call) {
        std::uint64_t before = 0;
        const Code code = fabric.add(0, call.first_slot, 1, before);
        if (code != Code::ok) return code;
        return fabric.wait({.member = call.index, .slot = call.first_slot + 1, .from = 0, .round = 1}, call.generation);
    }
};

// The basic barrier of message-passing collectives: linear, with one-sided signals instead of sends and receives. It
// differs from `linear` only by the name that users know.
struct Basic {
    static constexpr std::string_view name = "basic";
    static constexpr std::string_view summary = "as linear, under the name of the basic collectives";

    static constexpr int slots(int n) { return Linear::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return Linear::run(fabric, call);
    }
};

}  // namespace npushmem::barrier
