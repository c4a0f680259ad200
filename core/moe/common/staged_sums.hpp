// SPDX-License-Identifier: BSD-3-Clause
// Weighted sums of rows through the unified buffer of a core: the form of a reduction that runs on a device. It gives
// the same bits as a ReduceFunction, but another one of several NaNs may remain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/moe/common/reduce.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

using GatherRows = std::function<void(std::uint64_t sum, WeightedRows& rows)>;
using SumTarget = std::function<std::byte*(std::uint64_t sum)>;

// Computes the sums begin to end - 1, like reduce_each(). All are in memory when the scalar pipe continues.
void staged_sums(npu::Core& core, const Reduction& reduction, std::uint64_t begin, std::uint64_t end,
                 const GatherRows& gather, const SumTarget& target);

}  // namespace npushmem::moe
