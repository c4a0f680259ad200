// Keeps the compiler from noticing that a measured loop is useless. Costs no instruction.
#pragma once

#include <atomic>

namespace npushmem::bench {

// `value` is computed here.
template <class T>
inline void do_not_optimize(const T& value) {
    asm volatile("" : : "r,m"(value) : "memory");
}

// Everything stored before is in memory here, everything loaded after is loaded again.
inline void clobber_memory() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace npushmem::bench
