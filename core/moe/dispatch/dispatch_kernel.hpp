// SPDX-License-Identifier: BSD-3-Clause
// The dispatch on the device: each rank counts its rows per expert and publishes the counts to all ranks. From all
// counts every rank computes where its rows go and how many rows it receives. Then it puts its rows into their places,
// expert after expert.
//
// With fixed slots each rank puts its rows at once, and then its record with the counts.
//
// Kernels, for any number of cores. Core c of n serves the ranks (my_pe + 1 + c + i * n) mod ranks. They throw
// KernelError with the rank that did not arrive in time, or whose word has a value that the protocol cannot produce.
#pragma once

#include "core/moe/dispatch/dispatch_layout.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// The whole dispatch, if all ranks are mapped.
void moe_dispatch(npu::Core& core, const DispatchWork& work);

// The steps of a dispatch, in order, for a host that serves some of the ranks between them. Counts and sorts the
// choices, and publishes the counts.
void moe_dispatch_publish_counts(npu::Core& core, const DispatchWork& work);
// Waits for the counts of all ranks, makes the tables, and decides whether the call is accepted.
void moe_dispatch_tables(npu::Core& core, const DispatchWork& work);
// Puts the rows. Only for an accepted call.
void moe_dispatch_rows(npu::Core& core, const DispatchWork& work);
// Waits for the rows of all ranks.
void moe_dispatch_await(npu::Core& core, const DispatchWork& work);

// With fixed slots, in two launches: the first waits for no other rank. The second one waits for the rows of all
// ranks, makes the tables, and decides whether the call is accepted.
void moe_dispatch_sort_and_send_fixed(npu::Core& core, const DispatchWork& work);
void moe_dispatch_receive_fixed(npu::Core& core, const DispatchWork& work);
// The steps of the first launch, for a host that serves some of the ranks between them.
void moe_dispatch_sort(npu::Core& core, const DispatchWork& work);
void moe_dispatch_send_fixed(npu::Core& core, const DispatchWork& work);

// Adds the abort bit to this rank's words at all ranks. Needs region and layout only.
void moe_dispatch_signal_abort(npu::Core& core, const DispatchWork& work);

}  // namespace npushmem::moe
