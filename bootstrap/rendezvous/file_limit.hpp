// The number of files a process may have open.
#pragma once

#include <cstddef>

namespace npushmem::rendezvous {

// Raises the process's soft limit towards the hard one so that at least `wanted` descriptors fit. Returns what fits.
// A process-wide setting; it is touched only when the default (usually 1024) is too small for the job.
std::size_t ensure_file_limit(std::size_t wanted);

}  // namespace npushmem::rendezvous
