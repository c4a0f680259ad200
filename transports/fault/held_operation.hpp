// An operation that the fault decorator has accepted but not yet passed on.
#pragma once

#include <cstdint>

#include "transports/shared/posted_operation.hpp"

namespace npushmem::fault {

struct HeldOperation {
    PostedOperation posted;
    std::uint64_t token = 0;
    std::uint64_t epoch = 0;    // how many fences came before it on its queue
    std::uint32_t waiting = 0;  // steps until it may be passed on
};

}  // namespace npushmem::fault
