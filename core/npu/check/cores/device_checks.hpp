// SPDX-License-Identifier: BSD-3-Clause
// The checks of the device's own limits, which are stricter than those of the kernel language.
#pragma once

#include "core/npu/check/domain.hpp"
#include "npushmem/npu/device_rules.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

class DeviceChecks {
public:
    DeviceChecks(const CheckedCore& core, Domain& domain, const DeviceRules& rules)
        : core_(core), domain_(domain), rules_(rules), any_(rules != DeviceRules{}) {}

    void check_command(const Command& command) {
        if (any_) check_rules(command);
    }
    void check_flag(Pipe from, Pipe to, int id, const char* name, const SourceLocation& where);
    // A load or store of S.
    void check_scalar(const void* address, const char* name, const SourceLocation& where) {
        if (rules_.mapped_pes > 0) check_mapped(number_of(address), core_.side(Pipe::scalar, name, where));
    }

private:
    void check_rules(const Command& command);
    void check_alignment(const Operand& operand, const FindingSide& side);
    void check_shape(const Operand& operand, const FindingSide& side);
    void check_mapped(std::uintptr_t address, const FindingSide& side);
    void check_pipe(Pipe pipe, const FindingSide& side);
    void report(Hazard hazard, const FindingSide& side, std::uintptr_t address, const std::string& detail);

    const CheckedCore& core_;
    Domain& domain_;
    const DeviceRules rules_;
    const bool any_;
};

}  // namespace npushmem::npu::check
