// SPDX-License-Identifier: BSD-3-Clause
// Local copies as baselines: memcpy, and the two plans of the packing sender.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "bench/moe/pack_sender.hpp"
#include "npushmem/moe.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};
// Private memory of this process, aligned to a page like symmetric memory.
using PageMemory = std::unique_ptr<std::byte[], FreeMemory>;

// Fills the memory, so that every page is touched before any timing. Throws std::bad_alloc.
PageMemory page_memory(std::size_t bytes, std::byte filling = std::byte{0});

// memcpy of as many bytes as the case moves: one read and one write of each byte, the minimum of memory traffic. Copies
// `source` alternately into one of two private buffers, like the receive buffers of the combine.
class CopyBaseline {
public:
    CopyBaseline(const std::byte* source, std::size_t bytes);

    Status ordinary();
    Status streaming();

private:
    std::byte* next_target();

    const std::byte* source_;
    std::size_t bytes_;
    PageMemory memory_;
    bool second_ = false;
};

// The two plans of the sender for packing scattered rows into one contiguous region per rank: plan 2 gathers while it
// copies; plan 1 first reorders all rows and then copies them.

class PackPlans {
public:
    // `plan`, its tables and x must outlive the object.
    PackPlans(const npushmemx_moe_plan_t& plan, const std::byte* x, std::int64_t row_bytes);

    Status gather();
    Status reorder();

private:
    Status run(void (*kernel)(npu::Core&, const moe::PackArguments&));

    moe::PackArguments pack_;
    PageMemory tx_buffer_;
    PageMemory ordered_;
};

}  // namespace npushmem::perf
