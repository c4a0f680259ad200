// SPDX-License-Identifier: BSD-3-Clause
// Variables that bound the buffers of libfabric's provider ofi_rxm, with the values that the transport `libfabric`
// needs. npushmem-run sets them for each PE; under another launcher the transport sets them when it opens.
#pragma once

#include <array>
#include <cstddef>

namespace npushmem {

struct RxmVariable {
    const char* name;
    std::size_t value;
};

// The transport's messages fit into one buffer.
inline constexpr std::size_t rxm_buffer_bytes = 4096;

// By default an endpoint over tcp posts 4096 buffers of 16 KiB: 70 MB, which it clears when it opens. An endpoint over
// verbs posts 128 to each connection.
inline constexpr std::array<RxmVariable, 2> rxm_variables{
    {{"FI_OFI_RXM_BUFFER_SIZE", rxm_buffer_bytes}, {"FI_OFI_RXM_MSG_RX_SIZE", 128}}};

}  // namespace npushmem
