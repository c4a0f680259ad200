// The dispatch's work for ranks whose memory is not mapped here: the host puts their records and rows through the
// transport. Both are complete after memory.quiet(), which must come before this rank waits for others.
#pragma once

#include "core/moe/dispatch/dispatch_work.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// After moe_dispatch_publish_counts: to every rank that work.host_served marks.
void publish_counts_remotely(SymmetricMemory& memory, const DispatchWork& work);

// After moe_dispatch_tables, when all was accepted.
void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work);

void signal_dispatch_abort_remotely(SymmetricMemory& memory, const DispatchWork& work);

}  // namespace npushmem::moe
