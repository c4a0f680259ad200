// SPDX-License-Identifier: BSD-3-Clause
// The barrier calls that a simulation runs, one per member.
#pragma once

#include <unordered_map>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

struct Operation {
    enum class Kind : std::uint8_t { signal, wait, complete } kind;
    barrier::AwaitedSlot awaited;
    std::uint64_t value = 0;
};

// The calls of all members, and the operations that a call consists of. They are recorded by a run of the schedule
// without any time.
class Programs {
public:
    Programs(const barrier::Plan& plan, const Team& team);

    // `nodes`: memory that the call refers to.
    [[nodiscard]] barrier::BarrierCall call_of(int member, barrier::NodeLayout& nodes) const;
    // The member's operations; null if they depend on fetched values. The result is kept.
    const std::vector<Operation>* script_of(int member);
    // Whether members wait for other members' slots. If any do, some of the first few do.
    [[nodiscard]] bool polls_others() const;

private:
    barrier::Plan plan_;
    Team team_;
    std::vector<int> everyone_;
    std::vector<int> leaders_;
    std::unordered_map<int, std::vector<Operation>> scripts_;  // empty: it has none
};

}  // namespace npushmem::simulate
