// The rings to and from ranks whose memory is not mapped here: the host puts the rows through the transport, or into a
// ring of its own from which the other fetches them, takes what has come, and does both for all of these ranks at once,
// so that none waits for another.
#pragma once

#include <cstdint>

#include "core/moe/stream/stream_combine.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// Everything of a chunk that goes to the ranks that work.send.host_served marks, and that comes from them; beside the
// kernels that serve the others. `limit`: longest time in which nothing at all goes on; 0: the library's.
Status exchange_remotely(SymmetricMemory& memory, const StreamCombine& work, std::uint64_t chunk,
                         std::chrono::nanoseconds limit);

// The same for moe_stream_signal_abort.
void signal_stream_abort_remotely(SymmetricMemory& memory, const StreamCombine& work);

}  // namespace npushmem::moe
