// The size of this host's last-level cache.
#pragma once

namespace npushmem::perf {

// Bytes, as the processor reports it (a virtual machine may see more than its share); 0: unknown.
double last_level_cache();

}  // namespace npushmem::perf
