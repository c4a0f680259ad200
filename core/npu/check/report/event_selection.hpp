// SPDX-License-Identifier: BSD-3-Clause
// Which events explain a failure.
#pragma once

#include <vector>

#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/kernel_event.hpp"

namespace npushmem::npu::check {

inline constexpr std::size_t max_selected_events = 24;

// Sets Finding::events to those of `all` that explain the finding, at most max_selected_events, in order: its two
// accesses, what orders them or should have, what else uses the same memory, and the chain of signals and waits that
// leads to them. Sets the memory of both sides and the causes of waits.
void select_events(std::vector<KernelEvent> all, Finding& finding);

}  // namespace npushmem::npu::check
