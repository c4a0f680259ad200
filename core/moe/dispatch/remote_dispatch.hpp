// The dispatch for ranks whose memory is not mapped here: the host puts records and rows through the transport. Both
// are complete after memory.quiet(). Call quiet before this rank waits for others.
#pragma once

#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"

namespace npushmem::moe {

// Publishes the counts to every rank that work.host_served marks. Call it after moe_dispatch_publish_counts.
void publish_counts_remotely(SymmetricMemory& memory, const DispatchWork& work);

// Puts the rows to these ranks. Call it after moe_dispatch_tables, if the call is accepted.
void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work);

void signal_dispatch_abort_remotely(SymmetricMemory& memory, const DispatchWork& work);

}  // namespace npushmem::moe
