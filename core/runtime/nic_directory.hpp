// The NICs of all PEs of the job, as each told the others at start: bytes only, looked into when a peer is used.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/runtime/exchange.hpp"
#include "topology/assignment.hpp"
#include "topology/nic_pair.hpp"

namespace npushmem {

class NicDirectory {
public:
    // Of a job in which nobody has NICs.
    NicDirectory() = default;
    // Collective. `mine`: without NICs where this PE has none.
    static Result<NicDirectory> gather(Bootstrap& bootstrap, int my_pe, topology::PeAssignment mine);

    // The NICs over which this PE and that one talk, the best pair first; empty when either has none. Any thread.
    [[nodiscard]] Result<std::vector<topology::NicPair>> pairs(int pe) const;

    // For people: "mlx5_0:1 -> mlx5_0:1, rail 0 on both ends"; empty without a pair.
    [[nodiscard]] std::string describe(int pe) const;

private:
    bool known_ = false;
    int my_pe_ = -1;
    GatheredBytes nics_;
};

}  // namespace npushmem
