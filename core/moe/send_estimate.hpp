// How long a device would take to send the rows of a combine in direct mode: the sender's own kernel, in the form that
// runs on a device, for all ranks at once in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/routing.hpp"
#include "core/moe/units.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::moe {

// Cores of each rank's device.
struct EstimateCores {
    int blocks = 20;
    int vector_cores = 2;
};

// Runs the sender on all ranks of the routing; `time`, a new one, has the result. Fails as CheckedJob::create, and as
// the kernel does. The receive memory is there in full; what the rows hold does not matter, so all ranks send one x.
Status estimate_send(npu::VirtualTime& time, const Routing& routing, Bytes row, const EstimateCores& cores);

// Share of the whole time in which links move bytes, each direction for itself.
struct LinksBusy {
    double min = 0;
    double mean = 0;
    double max = 0;
    std::size_t links = 0;
};
// Of the links between two ranks. `group`: of the model, above 0; each rank has a link to each of its group. A link
// that nothing goes over is busy for 0 of it.
LinksBusy links_busy(const npu::VirtualReport& report, int ranks, int group);
// Of the ranks' ports to other groups, where there are any.
LinksBusy ports_busy(const npu::VirtualReport& report, int ranks, int group);

}  // namespace npushmem::moe
