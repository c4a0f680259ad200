// SPDX-License-Identifier: BSD-3-Clause
// One counter at member 0: each member adds one, and the member that raises it to n times the generation is the last
// and releases the others. On mapped memory the release is one word that all poll, so each PE runs once per call and
// blocks once: the cheapest barrier when PEs share cores. The add is contended, so it does not scale with the number of
// cores.
//
// The counter is never reset; it and n * generation wrap together. Slots: the counter; the release word, polled at
// member 0; and on other fabrics a release slot of each member. No parity: a member enters call g+1 only when the
// release of call g has arrived, so at most one release is in flight to it.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct SharedCounter {
    static constexpr std::string_view name = "shared_counter";
    static constexpr std::string_view summary = "all add to one counter, the last releases: one switch per PE";

    static constexpr int slots(int /*n*/) { return 3; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        std::uint64_t before = 0;
        const Code code = fabric.add(root, call.first_slot + counter, 1, before);
        if (code != Code::ok) return code;
        const bool last = before + 1 == call.generation * static_cast<std::uint64_t>(call.n);
        if (fabric.polls_peers()) return last ? release_word(fabric, call) : wait_for_word(fabric, call);
        return last ? release_each(fabric, call) : wait_for_own(fabric, call);
    }

private:
    static constexpr int root = 0;
    static constexpr int counter = 0;
    static constexpr int word = 1;
    static constexpr int own = 2;

    template <Fabric F>
    static Code release_word(F& fabric, const BarrierCall& call) {
        return fabric.signal(root, call.first_slot + word, call.generation);
    }

    template <Fabric F>
    static Code wait_for_word(F& fabric, const BarrierCall& call) {
        return fabric.wait({.member = root, .slot = call.first_slot + word}, call.generation);
    }

    template <Fabric F>
    static Code release_each(F& fabric, const BarrierCall& call) {
        for (int member = 0; member < call.n; ++member) {
            if (member == call.index) continue;
            const Code code = fabric.signal(member, call.first_slot + own, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code wait_for_own(F& fabric, const BarrierCall& call) {
        return fabric.wait({.member = call.index, .slot = call.first_slot + own}, call.generation);
    }
};

// Each member raises a flag in its own memory. Member 0 polls one flag after the other until it is raised, so none is
// counted twice, then releases all members and completes those writes before it returns. Member 0 does all the work and
// the others send nothing: n-1 round trips.
//
// Slots: the flag, written by its own member only; and the release, which member 0 writes for call g+1 only after it
// has seen the flag of g+1. So it needs no parity.
struct CentralCounter {
    static constexpr std::string_view name = "central_counter";
    static constexpr std::string_view summary = "member 0 polls every flag, then releases all: n-1 round trips";

    static constexpr int slots(int /*n*/) { return 2; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return call.index == 0 ? lead(fabric, call) : follow(fabric, call);
    }

private:
    template <Fabric F>
    static Code lead(F& fabric, const BarrierCall& call) {
        Code code = Code::ok;
        for (int member = 1; member < call.n && code == Code::ok; ++member)
            code = fabric.wait({member, call.first_slot, member, 0}, call.generation);
        for (int member = 1; member < call.n && code == Code::ok; ++member)
            code = fabric.signal(member, call.first_slot + 1, call.generation);
        return code == Code::ok ? fabric.complete() : code;
    }

    template <Fabric F>
    static Code follow(F& fabric, const BarrierCall& call) {
        const Code code = fabric.signal(call.index, call.first_slot, call.generation);
        return code == Code::ok ? fabric.wait({call.index, call.first_slot + 1, 0, 1}, call.generation) : code;
    }
};

}  // namespace npushmem::barrier
