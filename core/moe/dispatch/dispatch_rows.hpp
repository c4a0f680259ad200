// The rows of one rank for one holder of experts, from where the tokens lie to where the experts want them.
#pragma once

#include "core/moe/dispatch/dispatch_work.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// Rows and slots of this rank for all experts of `holder`, by the order, begins and starts that were found. Complete
// for a signal of the scalar pipe.
void put_rows(npu::Core& core, const DispatchWork& work, std::int32_t holder);

}  // namespace npushmem::moe
