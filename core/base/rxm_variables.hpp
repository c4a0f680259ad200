// SPDX-License-Identifier: BSD-3-Clause
// Variables that bound the memory of libfabric's provider ofi_rxm, with the values that the transport `libfabric`
// needs. npushmem-run sets them for each PE; under another launcher the transport sets them when it opens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace npushmem {

struct RxmVariable {
    const char* name;
    std::size_t value;
};

// The transport's messages fit into one buffer. Every endpoint has at least 1024 buffers for each direction and
// initialises them all, so the size is that of the largest message that cannot be divided, NPUSHMEM_PUT_STRIDED_MAX and
// a header.
inline constexpr std::size_t rxm_buffer_bytes = 2304;

// By default an endpoint over tcp posts 4096 buffers of 16 KiB: 70 MB, which it clears when it opens. An endpoint over
// verbs posts 128 to each connection. FI_UNIVERSE_SIZE, by default 256, is the number of connections for which
// libfabric sizes the completion queue of every endpoint; those of 256 over tcp take 12 MB each after that many
// completions. Each peer has one connection to this PE's receiver for each of its lanes.
inline std::array<RxmVariable, 3> rxm_variables(int npes) {
    constexpr int lanes = 4;
    const auto connections = static_cast<std::size_t>(std::clamp(npes, 1, 256 / lanes) * lanes);
    return {{{"FI_OFI_RXM_BUFFER_SIZE", rxm_buffer_bytes},
             {"FI_OFI_RXM_MSG_RX_SIZE", 128},
             {"FI_UNIVERSE_SIZE", connections}}};
}

}  // namespace npushmem
