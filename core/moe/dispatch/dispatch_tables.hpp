// SPDX-License-Identifier: BSD-3-Clause
// The tables of a dispatch: from expert ids to counts, and from the counts of all ranks to the places of rows. One core
// of a rank does this work. In route staged it works in its unified buffer, if the tables fit.
#pragma once

#include "core/moe/dispatch/dispatch_layout.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Counts and sorts the choices, and writes the counts into the record. Nothing to do in a cached call.
void sort_choices(npu::Core& core, const DispatchWork& work);

// From the records of all ranks: decides whether the call is accepted, and unless it is cached makes the tables.
void make_tables(npu::Core& core, const DispatchWork& work);

}  // namespace npushmem::moe
