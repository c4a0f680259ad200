// SPDX-License-Identifier: BSD-3-Clause
// The exception that kernels throw. It ends the launch unless the kernel catches it.
#pragma once

#include <stdexcept>
#include <string>

#include "npushmem/npu/export.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// A misuse of the kernel language (bad alignment, exhausted UB, ...) or a failed wait (deadline, dead peer, launch
// aborted because another core failed). An exception that leaves a kernel ends its launch: the other cores unwind at
// their next wait, and the stream's synchronize() returns the code and the message.
class NPUSHMEM_NPU_EXPORT KernelError : public std::runtime_error {
public:
    KernelError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    // For a violated rule with a hazard number; the message ends with this number.
    KernelError(Code code, const std::string& message, Hazard hazard, const SourceLocation& where)
        : std::runtime_error(message), code_(code), hazard_(hazard), where_(where) {}
    explicit KernelError(const Status& status) : KernelError(status.code(), status.message()) {}

    [[nodiscard]] Code code() const noexcept { return code_; }
    // Hazard::none and an empty `where` for errors without a hazard number.
    [[nodiscard]] Hazard hazard() const noexcept { return hazard_; }
    [[nodiscard]] const SourceLocation& where() const noexcept { return where_; }

private:
    Code code_;
    Hazard hazard_ = Hazard::none;
    SourceLocation where_;
};

}  // namespace npushmem::npu
