// Who is known to have died: asked by everything that waits, now and then, so that no wait outlives the PE it needs.
#pragma once

#include <optional>

namespace npushmem {

// World PEs by index: first, first + stride, ... (count of them), or, with a table, the first `count` there; it must
// outlive the range. Empty: none.
struct PeRange {
    int first = 0;
    int stride = 1;
    int count = 0;
    const int* table = nullptr;

    static PeRange one(int pe) { return {pe, 1, 1}; }
    [[nodiscard]] int at(int index) const { return table == nullptr ? first + index * stride : table[index]; }
};

class Liveness {
public:
    Liveness() = default;
    Liveness(const Liveness&) = delete;
    Liveness& operator=(const Liveness&) = delete;
    virtual ~Liveness() = default;

    // The PE to blame when one of `pes` is known to be dead: that one (the first in their order), or the PE whose end
    // led to its own. A PE about which nothing is known counts as alive. May cost microseconds per PE; waits ask at
    // growing intervals. Any thread.
    virtual std::optional<int> find_dead(const PeRange& pes) = 0;
};

}  // namespace npushmem
