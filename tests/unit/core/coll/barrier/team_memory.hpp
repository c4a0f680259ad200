// The states of a whole team in one process's memory, one beside the other, all zero.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "core/coll/barrier/state.hpp"

namespace npushmem::barrier::testing {

class TeamMemory {
public:
    explicit TeamMemory(int n) : n_(n), lines_(state_bytes(n) / line_bytes * static_cast<std::size_t>(n)) {}

    std::byte* first() { return lines_.front().bytes; }
    [[nodiscard]] std::ptrdiff_t distance() const { return static_cast<std::ptrdiff_t>(state_bytes(n_)); }
    std::byte* of(int member) { return first() + member * distance(); }

private:
    struct alignas(line_bytes) Line {
        std::byte bytes[line_bytes] = {};
    };

    int n_;
    std::vector<Line> lines_;
};

}  // namespace npushmem::barrier::testing
