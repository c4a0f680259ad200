// SPDX-License-Identifier: BSD-3-Clause
// The speed of a modelled NPU in virtual time. The values are estimates for comparing kernels, not measurements.
#pragma once

#include <string>
#include <string_view>

#include "npushmem/npu/export.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// Rates are in gigabytes (1e9 bytes) per second, times in nanoseconds. The defaults model a part with 1.2 TB/s of
// memory and seven links of 28 GB/s, in servers of eight. All cores of a PE share memory and links; each core has its
// own of the rest.
struct DeviceModel {
    double gm_rate = 1200;
    double gm_latency = 400;   // of a copy, and of a scalar access that misses the cache
    double copy_rate = 80;     // of one MTE2 or MTE3 pipe
    double vector_rate = 400;  // counted on the largest operand
    double vector_latency = 20;
    double issue = 4;  // scalar pipe, for each command, flag and cached access
    double flag = 20;  // from one pipe to another
    double core_barrier = 600;
    double hccs_rate = 28;       // of a link, each direction
    double hccs_latency = 1000;  // one way
    double switch_rate = 28;     // of a PE's port to other servers or groups
    double switch_latency = 2000;
    int group = 8;  // consecutive PEs that are fully linked: 0 to group - 1, and so on

    // Parses lines "name = value" with the names above; '#' begins a comment. Missing names keep their defaults.
    // Ignores the names of DeviceConfig::apply, so that one file describes the whole device. Returns Code::config with
    // the line and the error.
    NPUSHMEM_NPU_EXPORT static Result<DeviceModel> parse(std::string_view text);
    // Parses a file of this format. Returns Code::config also when it cannot be read.
    NPUSHMEM_NPU_EXPORT static Result<DeviceModel> read(const std::string& path);
    // The whole model in the format of parse, for editing.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

}  // namespace npushmem::npu
