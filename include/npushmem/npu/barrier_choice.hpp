// Which barrier among PEs.
#pragma once

#include <string_view>

#include "npushmem/npu/export.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

inline constexpr int barrier_v2_max_radix = 8;

enum class BarrierVariant : unsigned char { automatic, v1, v2, v3 };

// What NPUSHMEM_NPU_BARRIER says: v1, v2, v2:<radix>, v3 or auto.
struct BarrierChoice {
    BarrierVariant variant = BarrierVariant::automatic;
    int radix = barrier_v2_max_radix;  // of v2

    // Code::config with the forms that exist.
    NPUSHMEM_NPU_EXPORT static Result<BarrierChoice> parse(std::string_view text);
    // What it is for a team of this size: never automatic.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT BarrierChoice resolved(int size) const;
};

}  // namespace npushmem::npu
