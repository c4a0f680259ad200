#include "bench/cases/job_worker_group.hpp"

#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::bench {
namespace {

constexpr int half_word = 32;

std::uint64_t word_of(const BatchCommand& command) {
    return static_cast<std::uint64_t>(command.variant) << half_word | command.iterations;
}

BatchCommand command_of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> half_word), static_cast<std::uint32_t>(word)};
}

}  // namespace

JobWorkerGroup::JobWorkerGroup(std::uint64_t* command_word)
    : command_word_(command_word), pe_(npushmem_my_pe()), pes_(npushmem_n_pes()) {}

// The first barrier shows that all have read the previous command; the second, that all can read this one.
void JobWorkerGroup::broadcast(const BatchCommand& command) {
    npushmem_barrier_all();
    for (int pe = 1; pe < pes_; ++pe) npushmem_uint64_p(command_word_, word_of(command), pe);
    npushmem_barrier_all();
}

BatchCommand JobWorkerGroup::receive() {
    npushmem_barrier_all();
    npushmem_barrier_all();
    // After a failure the barriers no longer synchronise the PEs, and the word may hold anything.
    return npushmemx_last_error(nullptr) == 0 ? command_of(*command_word_) : BatchCommand{};
}

}  // namespace npushmem::bench
