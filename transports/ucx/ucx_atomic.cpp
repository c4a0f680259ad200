#include "transports/ucx/ucx_atomic.hpp"

#include "npushmem/plugin/transport.h"

namespace npushmem::ucx {

std::optional<UcxAtomic> atomic_of(int operation) {
    using Reply = UcxAtomic::Reply;
    switch (operation) {
        case NPUSHMEM_ATOMIC_FETCH:  // adds nothing
        case NPUSHMEM_ATOMIC_FETCH_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::wanted};
        case NPUSHMEM_ATOMIC_SET: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::dropped};
        case NPUSHMEM_ATOMIC_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::none};
        case NPUSHMEM_ATOMIC_AND: return UcxAtomic{UCP_ATOMIC_OP_AND, Reply::none};
        case NPUSHMEM_ATOMIC_OR: return UcxAtomic{UCP_ATOMIC_OP_OR, Reply::none};
        case NPUSHMEM_ATOMIC_XOR: return UcxAtomic{UCP_ATOMIC_OP_XOR, Reply::none};
        case NPUSHMEM_ATOMIC_SWAP: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::wanted};
        case NPUSHMEM_ATOMIC_COMPARE_SWAP: return UcxAtomic{UCP_ATOMIC_OP_CSWAP, Reply::wanted};
        default: return std::nullopt;
    }
}

}  // namespace npushmem::ucx
