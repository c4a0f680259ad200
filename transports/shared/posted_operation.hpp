// SPDX-License-Identifier: BSD-3-Clause
// Operations that a transport has accepted but not yet carried out, for transports that defer operations.
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

// Holds a copy of the caller's structures, but not of the buffers they point to: the operation reads its source when it
// is carried out, as a NIC does, which exposes callers that change the source too early.
struct PostedOperation {
    std::variant<PostedPut, PostedGet, npushmem_atomic, npushmem_put_signal, npushmem_put_strided> what;

    [[nodiscard]] int pe() const;
    // True when the operation changes the target's memory, so that a later fence orders it.
    [[nodiscard]] bool updates() const;
    // Posts the operation to a queue of `transport`.
    Code issue(Transport& transport, std::uint64_t queue, std::uint64_t* token) const;
};

}  // namespace npushmem
