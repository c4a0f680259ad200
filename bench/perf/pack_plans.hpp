// The two ways of the sender to bring scattered rows into one contiguous region per rank: plan 2 gathers while it
// copies, plan 1 puts all rows in order first and copies them then.
#pragma once

#include <cstddef>

#include "bench/perf/page_memory.hpp"
#include "core/moe/pack/pack_arguments.hpp"
#include "npushmem/moe.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

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
