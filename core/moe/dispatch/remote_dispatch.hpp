// The dispatch's work for ranks whose memory is not mapped here: the host puts their cards and rows through the
// transport. Both are complete after memory.quiet(), which must come before this rank waits for others.
#pragma once

#include "core/moe/dispatch/dispatch_work.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// After moe_dispatch_show: to every rank that work.skipped marks.
void show_remotely(SymmetricMemory& memory, const DispatchWork& work);

// After moe_dispatch_tables, when all was accepted.
void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work);

void give_up_dispatch_remotely(SymmetricMemory& memory, const DispatchWork& work);

}  // namespace npushmem::moe
