// From expert ids to counts, and from everybody's counts to the tables: the work of one core.
#pragma once

#include "core/moe/dispatch/dispatch_work.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Fills tables.order, tables.begins and the counts behind tables.record. Complete for other cores after a barrier.
void sort_choices(npu::Core& core, const DispatchWork& work);

// When the records of all ranks are here: fills starts, totals, accepted and the two tables. Complete for other cores
// after a barrier. The tables mean nothing unless all is accepted.
void make_tables(npu::Core& core, const DispatchWork& work);

}  // namespace npushmem::moe
