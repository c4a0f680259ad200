// SPDX-License-Identifier: BSD-3-Clause
// Selection of the barrier algorithm among PEs.
#pragma once

#include <string_view>

#include "npushmem/npu/export.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

inline constexpr int barrier_v2_max_radix = 8;

enum class BarrierVariant : unsigned char { automatic, v1, v2, v3 };

// The value of NPUSHMEM_NPU_BARRIER: v1, v2, v2:<radix>, v3 or auto.
struct BarrierChoice {
    BarrierVariant variant = BarrierVariant::automatic;
    int radix = barrier_v2_max_radix;  // of v2, 2 to 8

    // Returns Code::config, with the valid forms, for any other text.
    NPUSHMEM_NPU_EXPORT static Result<BarrierChoice> parse(std::string_view text);
    // The variant for a team of `size` PEs; never automatic.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT BarrierChoice resolved(int size) const;
};

}  // namespace npushmem::npu
