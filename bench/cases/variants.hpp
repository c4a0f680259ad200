// From what is done once to the batch that does it often.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/engine/do_not_optimize.hpp"
#include "bench/engine/point.hpp"

namespace npushmem::bench {

// `once(i)` for i = 0, 1, ...: inlined into the loop, which the compiler must not change. It should hold pointers and
// numbers only: the loop works on a copy, so that they stay in registers.
template <class Once>
Batch repeat(Once once) {
    return [once](std::uint64_t iterations) {
        const Once local = once;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            local(i);
            clobber_memory();
        }
    };
}

template <class Once>
Variant measured(Once once) {
    return {"npushmem", repeat(std::move(once)), false};
}

template <class Once>
Variant baseline(std::string name, Once once) {
    return {std::move(name), repeat(std::move(once)), true};
}

}  // namespace npushmem::bench
