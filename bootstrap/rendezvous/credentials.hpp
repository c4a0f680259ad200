// What a unique id gives to those who hold it: the public name of the job and the secret that proves membership.
#pragma once

#include <array>
#include <cstddef>

namespace npushmem::rendezvous {

using Nonce = std::array<std::byte, 16>;
using Secret = std::array<std::byte, 32>;

struct Credentials {
    Nonce job{};      // crosses the wire: tells jobs that share a service apart
    Secret secret{};  // never crosses the wire
};

}  // namespace npushmem::rendezvous
