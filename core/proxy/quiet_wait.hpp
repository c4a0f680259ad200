// A quiet that a core waits for, while some PEs have not completed what was asked of them before.
#pragma once

#include <cstdint>
#include <memory>

#include "core/proxy/asker.hpp"

namespace npushmem::proxy {

struct QuietWait {
    std::shared_ptr<Asker> asker;
    std::uint64_t number = 0;  // the asker's
    int open = 0;              // PEs that are still to complete
    Status first;              // failure of those that have
};

}  // namespace npushmem::proxy
