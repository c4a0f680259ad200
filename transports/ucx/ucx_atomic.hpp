// What atomic operations are to UCX.
#pragma once

#include <ucp/api/ucp.h>

#include <optional>

namespace npushmem::ucx {

struct UcxAtomic {
    ucp_atomic_op_t operation;
    enum class Reply { none, dropped, wanted } reply;
};

// Of an NPUSHMEM_ATOMIC_x of 64 bits; nothing: it is not UCX's.
std::optional<UcxAtomic> atomic_of(int operation);

}  // namespace npushmem::ucx
