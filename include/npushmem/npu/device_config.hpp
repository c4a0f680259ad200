// SPDX-License-Identifier: BSD-3-Clause
// Size and time limits of an emulated NPU, and device files that describe them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "npushmem/npu/barrier_choice.hpp"
#include "npushmem/npu/device_rules.hpp"
#include "npushmem/npu/export.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

struct DeviceConfig {
    int blocks = 20;                                   // maximum blocks of one launch, 1 to 4096
    int vector_cores = 2;                              // sub-cores per block, 1 to 16
    std::size_t ub_bytes = 192 * 1024;                 // per vector core; a multiple of 4096
    std::size_t ub_reserved = 4 * 1024;                // the top of UB, reserved for the library
    int workers = 1;                                   // threads that run launches, 1 to 64; started when needed, also
                                                       // one for each launch with blocks_thread
    std::size_t stack_bytes = 256 * 1024;              // per core, from 64 KiB; pages are committed when touched
    std::chrono::nanoseconds wait_timeout{0};          // default deadline of every wait in a kernel; 0: none
    std::chrono::nanoseconds launch_timeout{0};        // default deadline of a launch from its start; 0: none
    std::function<void(std::string_view)> print = {};  // receives the lines of Core::print; empty: standard output
    HooksFactory hooks = {};                           // empty: fast mode
    BarrierChoice barrier = {};                        // for barriers without a choice of their own
    RemoteMode remote_mode = RemoteMode::configured;   // for PEs that are not mapped
    DeviceRules rules = {};                            // limits of the device that checked mode checks

    [[nodiscard]] int cores() const { return blocks * vector_cores; }
    // Returns Code::config with the first value that is out of range.
    [[nodiscard]] Status validate() const;

    // Sets what the lines "name = value" of a device file name: blocks, vector_cores, ub_bytes, ub_reserved, the
    // members of `rules`, and `pipes`, a list of V, MTE2 and MTE3. Sizes may end in K, M or G. '#' begins a comment.
    // Ignores the names of DeviceModel, so that one file describes the whole device. Returns Code::config with the
    // line, the name, the value and the accepted values, and then changes nothing.
    NPUSHMEM_NPU_EXPORT Status apply(std::string_view text);
    // Like apply, with the contents of a file. Returns Code::config also when it cannot be read.
    NPUSHMEM_NPU_EXPORT Status apply_file(const std::string& path);
    // What apply accepts, with the present values, for editing.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

}  // namespace npushmem::npu
