// SPDX-License-Identifier: BSD-3-Clause
// The limits of a device beyond those of the kernel language. Checked mode reports kernels that violate them.
#pragma once

#include <cstddef>

#include "npushmem/npu/copy_shape.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// The defaults are the limits of the kernel language; a device may have stricter ones. Hazards: see hazard.hpp.
struct DeviceRules {
    std::size_t ub_alignment = 32;         // of addresses in UB, a power of two from 32 to 4096 (H1)
    std::size_t gm_alignment = 1;          // of GM in copies to or from UB, a power of two up to 4096 (H1)
    std::size_t max_copy_blocks = 4095;    // of one copy to or from UB, 1 to 4095 (H6)
    std::size_t max_copy_bytes = 2097151;  // of one block of such a copy, 32 to 2,097,151 (H6)
    std::size_t flag_ids = npu::flag_ids;  // per pair of pipes, 1 to 6 (H18)
    bool has_vector = true;                // pipe V (H6)
    bool has_copy_in = true;               // pipe MTE2 (H6)
    bool has_copy_out = true;              // pipe MTE3 (H6)
    // Kernels load, store and copy only the memory of PEs of their own group of so many consecutive PEs; other PEs need
    // put, get, signals or atomics (H10). 0: every PE is in the group.
    std::size_t mapped_pes = 0;
    std::size_t gm_bytes = 0;  // maximum symmetric memory of a PE; 0: no limit

    friend bool operator==(const DeviceRules&, const DeviceRules&) = default;

    // Returns Code::config with the first value that is out of range.
    [[nodiscard]] Status validate() const;
    [[nodiscard]] bool has(Pipe pipe) const {
        if (pipe == Pipe::vector) return has_vector;
        return pipe == Pipe::copy_in ? has_copy_in : pipe != Pipe::copy_out || has_copy_out;
    }
    [[nodiscard]] bool same_group(int a, int b) const {
        const auto size = static_cast<int>(mapped_pes);
        return size == 0 || a / size == b / size;
    }
};

}  // namespace npushmem::npu
