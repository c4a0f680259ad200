// SPDX-License-Identifier: BSD-3-Clause
// Estimates the time of a layer's dispatch and combine on devices: runs their kernels, in the device form, for all
// ranks at once in virtual time. What the host does between launches takes no time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/element.hpp"
#include "core/moe/common/routing.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::moe {

// Cores of each rank's device.
struct EstimateCores {
    int blocks = 20;
    int vector_cores = 2;
};

struct EstimateRows {
    std::int64_t hidden = 1;
    ElementType type = ElementType::bfloat16;  // of the rows that return, and of the output
    bool quantized = false;                    // rows of a dispatch have one byte for each element, and scales
    bool fixed_slots = false;                  // of a dispatch
};

// `time`, a new object, receives the result: from the call of all ranks, at the same time, until the last has its rows
// or sums. Both fail like CheckedJob::create, and like the kernels. The receive memory is allocated in full; the rows'
// values do not matter, so all ranks send the same ones.
//
// Dispatch: sorts the choices, exchanges the counts, makes the tables, and puts the rows.
Status estimate_dispatch(npu::VirtualTime& time, const Routing& routing, const EstimateRows& rows,
                         const EstimateCores& cores);
// Combine in mode direct: puts the rows into their slots, waits for those of all ranks, and adds them up. Returns the
// report of the first part, until the last rank has put its rows.
Result<npu::VirtualReport> estimate_combine(npu::VirtualTime& time, const Routing& routing, const EstimateRows& rows,
                                            const EstimateCores& cores);

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
