// SPDX-License-Identifier: BSD-3-Clause
// The rings to and from ranks whose memory is not mapped here. The host puts rows through the transport, or into its
// own ring, from which the other rank fetches them, and takes arrived rows. It serves all these ranks at once, so that
// none waits for another.
#pragma once

#include <cstdint>

#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/stream/stream_combine.hpp"

namespace npushmem::moe {

// Sends and receives all rows of a chunk for the ranks that work.send.host_served marks, while kernels serve the
// others. `limit`: maximum time without any progress; 0: the library's timeout.
Status exchange_remotely(SymmetricMemory& memory, const StreamCombine& work, std::uint64_t chunk,
                         std::chrono::nanoseconds limit);

// Does the work of moe_stream_signal_abort for these ranks.
void signal_stream_abort_remotely(SymmetricMemory& memory, const StreamCombine& work);

}  // namespace npushmem::moe
