// Random bytes for secrets and nonces.
#pragma once

#include <cstddef>
#include <span>

#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// From the kernel's generator; waits until that is seeded (early boot only).
Status fill_random(std::span<std::byte> out);

}  // namespace npushmem::rendezvous
