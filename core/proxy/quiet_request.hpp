// A quiet that a core waits for, while some PEs have not completed what was asked of them before.
#pragma once

#include <cstdint>
#include <memory>

#include "core/proxy/requester.hpp"

namespace npushmem::proxy {

struct QuietRequest {
    std::shared_ptr<RequesterState> requester;
    std::uint64_t number = 0;  // the requester's
    int open = 0;              // PEs that are still to complete
    Status first;              // failure of those that have
};

}  // namespace npushmem::proxy
