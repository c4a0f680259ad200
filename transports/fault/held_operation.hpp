// An operation that the fault decorator has accepted but not yet passed on.
#pragma once

#include <cstdint>
#include <variant>

#include "npushmem/plugin/local_atomic.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::fault {

struct HeldPut {
    npushmem_rma op;
};
struct HeldGet {
    npushmem_rma op;
};

// The caller's structures are copied, the buffers they point to are not: a source is read when the operation is passed
// on, as a network card would, so that a caller that changes it too early is found out.
struct HeldOperation {
    std::variant<HeldPut, HeldGet, npushmem_atomic, npushmem_put_signal> what;
    std::uint64_t token = 0;
    std::uint64_t epoch = 0;    // how many fences came before it on its queue
    std::uint32_t waiting = 0;  // steps until it may be passed on

    [[nodiscard]] int pe() const;
    // Changes the target's memory, so that a later fence orders it.
    [[nodiscard]] bool updates() const;
    // Passes it on.
    Code issue(Transport& inner, std::uint64_t queue, std::uint64_t* inner_token) const;
};

}  // namespace npushmem::fault
