// The dispatch on the device: each rank counts its rows per expert and shows the counts to all; from the counts of all
// every rank knows where its rows go and what comes to it; the rows are put into their places, expert after expert.
//
// Kernels, for any number of cores. Core c of n serves the ranks (my_pe + 1 + c + i * n) mod ranks. They throw
// KernelError naming the rank that did not come, or whose word is one that the protocol cannot produce.
#pragma once

#include "core/moe/dispatch/dispatch_work.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// The whole of it, for ranks that are all mapped.
void moe_dispatch(npu::Core& core, const DispatchWork& work);

// Its parts, in this order, for a host that serves some of the ranks in between:
// counts, sorts, and shows the counts;
void moe_dispatch_publish_counts(npu::Core& core, const DispatchWork& work);
// waits for the counts of all, makes the tables, and finds whether all is accepted;
void moe_dispatch_tables(npu::Core& core, const DispatchWork& work);
// puts the rows (only what was accepted);
void moe_dispatch_rows(npu::Core& core, const DispatchWork& work);
// waits for the rows of all.
void moe_dispatch_await(npu::Core& core, const DispatchWork& work);

// No rank shall wait any more for this one. Needs region and layout only.
void moe_dispatch_signal_abort(npu::Core& core, const DispatchWork& work);

}  // namespace npushmem::moe
