// The sender's work for ranks whose memory is not mapped here: the host puts their rows through the transport.
#pragma once

#include "core/moe/combine_sender.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// Starts sending to every rank that send.host_served marks: rows, then the signal. Complete after memory.quiet(), which
// must come before this rank waits for others: a transport may hold back what it was given until then.
void send_remote_rows(SymmetricMemory& memory, const CombineSend& send);

// The same for moe_combine_signal_abort.
void signal_abort_remotely(SymmetricMemory& memory, const CombineSend& send);

}  // namespace npushmem::moe
