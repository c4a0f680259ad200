// May two PEs share memory? A pure function of their hosts' identities.
#pragma once

#include <string>

#include "npushmem/plugin/transport.h"

namespace npushmem::shared_memory {

// "" when they may; else a clause for people that says what separates them.
std::string why_not_shareable(const npushmem_host_id& own, const npushmem_host_id& peer);

}  // namespace npushmem::shared_memory
