// An operation that a transport has accepted but not yet carried out, for transports that let operations wait.
#pragma once

#include <cstdint>
#include <variant>

#include "npushmem/plugin/transport.hpp"

namespace npushmem {

struct PostedPut {
    npushmem_rma op;
};
struct PostedGet {
    npushmem_rma op;
};

// The caller's structures are copied, the buffers they point to are not: a source is read when the operation is carried
// out, as a network card would, so that a caller that changes it too early is found out.
struct PostedOperation {
    std::variant<PostedPut, PostedGet, npushmem_atomic, npushmem_put_signal> what;

    [[nodiscard]] int pe() const;
    // Changes the target's memory, so that a later fence orders it.
    [[nodiscard]] bool updates() const;
    // Passes it to a queue of `transport`.
    Code issue(Transport& transport, std::uint64_t queue, std::uint64_t* token) const;
};

}  // namespace npushmem
