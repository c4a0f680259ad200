// How fast an NPU is taken to be where its time is virtual. Estimates for comparing kernels, not measurements.
#pragma once

#include <string>
#include <string_view>

#include "npushmem/npu/export.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// Rates in gigabytes (1e9) per second, times in nanoseconds. The defaults are those of a part with 1.2 TB/s of memory
// and seven links of 28 GB/s, in servers of eight. Memory and links are shared by all cores of a PE, the rest is each
// core's own.
struct DeviceModel {
    double gm_rate = 1200;
    double gm_latency = 400;   // of a copy, and of a scalar access that misses the cache
    double copy_rate = 80;     // of one MTE2 or MTE3 pipe
    double vector_rate = 400;  // bytes of the larger operand
    double vector_latency = 20;
    double issue = 4;  // S, for each command, flag and cached access
    double flag = 20;  // from one pipe to another
    double core_barrier = 600;
    double hccs_rate = 28;       // of a link, each direction
    double hccs_latency = 1000;  // one way
    double switch_rate = 28;     // of a PE's port to other servers or groups
    double switch_latency = 2000;
    int group = 8;  // PEs that are fully linked: 0 to group - 1, and so on

    // "name = value" a line, names as above, '#' begins a comment; what is not named keeps its default. Code::config
    // names the line, and what was wrong with it.
    NPUSHMEM_NPU_EXPORT static Result<DeviceModel> parse(std::string_view text);
    // A file with that. Code::config when it cannot be read.
    NPUSHMEM_NPU_EXPORT static Result<DeviceModel> read(const std::string& path);
    // All of it in that form: what parse takes, to be edited.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

}  // namespace npushmem::npu
