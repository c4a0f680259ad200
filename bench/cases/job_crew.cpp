#include "bench/cases/job_crew.hpp"

#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::bench {
namespace {

constexpr int half_word = 32;

std::uint64_t word_of(const Order& order) {
    return static_cast<std::uint64_t>(order.variant) << half_word | order.iterations;
}

Order order_of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> half_word), static_cast<std::uint32_t>(word)};
}

}  // namespace

JobCrew::JobCrew(std::uint64_t* board) : board_(board), pe_(npushmem_my_pe()), pes_(npushmem_n_pes()) {}

// The first meeting says that all have read the order before; the second, that all can read this one.
void JobCrew::give(const Order& order) {
    npushmem_barrier_all();
    for (int pe = 1; pe < pes_; ++pe) npushmem_uint64_p(board_, word_of(order), pe);
    npushmem_barrier_all();
}

Order JobCrew::receive() {
    npushmem_barrier_all();
    npushmem_barrier_all();
    // After a failure the meetings no longer keep the PEs together, and the board may hold anything.
    return npushmemx_last_error(nullptr) == 0 ? order_of(*board_) : Order{};
}

}  // namespace npushmem::bench
