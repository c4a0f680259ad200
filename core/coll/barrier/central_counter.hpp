// Everybody raises a flag at home; member 0 looks at one after the other until it is raised, so that nobody is counted
// twice, then releases all and completes those writes before it leaves. Member 0 does all the work and the others send
// nothing: n-1 round trips.
//
// Slots: the flag, written by its own member only, and the release, which member 0 writes for call g+1 only after it
// has seen the flag of g+1: no parity.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct CentralCounter {
    static constexpr std::string_view name = "central_counter";
    static constexpr std::string_view summary = "member 0 polls everybody's flag, then releases: n-1 round trips";

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
