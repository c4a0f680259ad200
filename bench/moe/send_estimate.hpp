// SPDX-License-Identifier: BSD-3-Clause
// Estimates the time in which a device sends the rows of a combine in direct mode: runs the sender's kernel, in its
// device form, for all ranks at once in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/common/element.hpp"
#include "core/moe/common/routing.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::moe {

// Cores of each rank's device.
struct EstimateCores {
    int blocks = 20;
    int vector_cores = 2;
};

// Runs the sender on all ranks of the routing. `time`, a new object, receives the result. Fails like
// CheckedJob::create, and like the kernel. The receive memory is allocated in full; the rows' values do not matter, so
// all ranks send the same x.
Status estimate_send(npu::VirtualTime& time, const Routing& routing, Bytes row, const EstimateCores& cores);

// Share of the total time in which links move bytes, per direction.
struct LinksBusy {
    double min = 0;
    double mean = 0;
    double max = 0;
    std::size_t links = 0;
};
// Of the links between two ranks. `group`: the model's group size, above 0; each rank has a link to each rank of its
// group. An unused link counts as 0.
LinksBusy links_busy(const npu::VirtualReport& report, int ranks, int group);
// Of the ranks' ports to other groups, if there are any.
LinksBusy ports_busy(const npu::VirtualReport& report, int ranks, int group);

}  // namespace npushmem::moe
