// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/device_checks.hpp"

#include <fmt/format.h>

namespace npushmem::npu::check {
namespace {

// Whether the command is a copy between UB and GM.
bool crosses(const Command& command) {
    const Operand& source = command.source[0];
    return command.target.address != nullptr && source.address != nullptr && command.target.global != source.global;
}

}  // namespace

void DeviceChecks::report(Hazard hazard, const FindingSide& side, std::uintptr_t address, const std::string& detail) {
    const bool in_heap = address != 0 && domain_.names.pe_of(address) >= 0;
    domain_.findings.report(hazard, side, FindingSide{}, in_heap ? domain_.names.name_of(address) : std::string{},
                            detail);
}

void DeviceChecks::check_pipe(Pipe pipe, const FindingSide& side) {
    if (pipe == Pipe::all || rules_.has(pipe)) return;
    report(Hazard::copy_shape, side, 0, fmt::format("uses pipe {}, which this device does not have", name_of(pipe)));
}

void DeviceChecks::check_alignment(const Operand& operand, const FindingSide& side) {
    const std::size_t alignment = operand.global ? rules_.gm_alignment : rules_.ub_alignment;
    const std::uintptr_t address = number_of(operand.address);
    if (address % alignment == 0) return;
    report(Hazard::alignment, side, operand.global ? address : 0,
           fmt::format("the {} address is {} bytes beyond a multiple of {}, which this device requires",
                       operand.global ? "GM" : "UB", address % alignment, alignment));
}

void DeviceChecks::check_shape(const Operand& operand, const FindingSide& side) {
    if (operand.blocks > rules_.max_copy_blocks)
        report(Hazard::copy_shape, side, 0,
               fmt::format("copies {} blocks; this device copies {} at most", operand.blocks, rules_.max_copy_blocks));
    const std::size_t bytes = operand.bytes - operand.padding;
    if (bytes > rules_.max_copy_bytes)
        report(Hazard::copy_shape, side, 0,
               fmt::format("copies blocks of {} bytes; this device copies {} at most", bytes, rules_.max_copy_bytes));
}

void DeviceChecks::check_mapped(std::uintptr_t address, const FindingSide& side) {
    const int pe = domain_.names.pe_of(address);
    if (pe < 0 || rules_.same_group(pe, core_.pe)) return;
    report(
        Hazard::bad_address, side, address,
        fmt::format("accesses memory of PE {} directly; this device maps only the PEs of a group of {}; use put, get, "
                    "put_signal, signal_*_on or atomic_*_on",
                    pe, rules_.mapped_pes));
}

void DeviceChecks::check_rules(const Command& command) {
    const FindingSide side = core_.side(command.pipe, command.name, command.where);
    check_pipe(command.pipe, side);
    const bool copy = crosses(command);
    for (const Operand* operand : {&command.target, &command.source[0], &command.source[1]}) {
        if (operand->address == nullptr) continue;
        if (copy || !operand->global) check_alignment(*operand, side);
        if (copy && operand->global) check_mapped(number_of(operand->address), side);
    }
    if (copy) check_shape(command.target.global ? command.target : command.source[0], side);
}

void DeviceChecks::check_flag(Pipe from, Pipe to, int id, const char* name, const SourceLocation& where) {
    const FindingSide side = core_.side(from, name, where);
    check_pipe(from, side);
    check_pipe(to, side);
    if (static_cast<std::size_t>(id) < rules_.flag_ids) return;
    report(Hazard::flag_id, side, 0, fmt::format("flag id {} must be 0 to {} on this device", id, rules_.flag_ids - 1));
}

}  // namespace npushmem::npu::check
