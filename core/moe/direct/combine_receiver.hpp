// SPDX-License-Identifier: BSD-3-Clause
// The receiver of a combine in direct mode: waits until the rows of every source rank have arrived or are offered in
// place, then computes each token's weighted sum.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/reduce.hpp"
#include "core/moe/common/slot_layout.hpp"
#include "core/moe/direct/rows_in_place.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

struct CombineReceive {
    const std::byte* region = nullptr;  // this PE's receive memory
    SlotLayout layout{1, Rows{0}, Bytes{1}};
    std::uint64_t epoch = 0;
    std::int32_t num_ranks = 0;
    const std::int32_t* experts = nullptr;  // [tokens, top_k], -1: no row
    const float* weights = nullptr;         // [tokens, top_k]
    Tokens tokens;
    std::int32_t top_k = 0;
    std::byte* out = nullptr;  // [tokens, columns of the reduction] of the output type
    Bytes out_row;
    Reduction reduction;
    std::chrono::nanoseconds timeout{0};  // per source; 0: the device's limit
    ReadInPlace in_place;
};

struct TokenRange {
    Tokens begin;
    Tokens end;  // exclusive
};

// Reduces this core's share of the tokens in `range`. All their rows are in their slots or offered.
void reduce_share(npu::Core& core, const CombineReceive& receive, const TokenRange& range);

// Kernel, for any number of cores. Throws KernelError with the rank that did not deliver its rows, has not read those
// of this one, or whose signal has a value that the protocol cannot produce.
void moe_combine_receiver(npu::Core& core, const CombineReceive& receive);

}  // namespace npushmem::moe
