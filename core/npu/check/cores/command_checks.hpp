// SPDX-License-Identifier: BSD-3-Clause
// The checks of the commands of one core: their operands against the known state of memory, where they are issued and
// where they run.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/npu/check/cores/pipes.hpp"
#include "core/npu/check/memory/ub_shadow.hpp"

namespace npushmem::npu::check {

// Finds operands of queued commands that PEs of other processes change. Those PEs leave no record here: what they do is
// found by comparing memory.
class OperandWatch {
public:
    OperandWatch(const CheckedCore& core, Domain& domain) : core_(core), domain_(domain) {}

    // Whether writes of this PE to the target have not landed.
    [[nodiscard]] bool has_own_writes(const Operand& target) const;
    // The command that first checks whether PEs of other processes changed its operands since it was issued.
    // `own_writes`: the result of has_own_writes(), before the command was recorded.
    [[nodiscard]] std::function<void()> watch(const Command& command, const Access& access, bool own_writes,
                                              std::function<void()> run);

private:
    // Whether the operand is symmetric memory that PEs of other processes also write, and that is mapped.
    [[nodiscard]] bool is_watchable(const Operand& operand) const;
    void check(const Operand& operand, const std::vector<std::byte>& before, Stamp issued, const Access& access,
               bool write);

    const CheckedCore& core_;
    Domain& domain_;
};

class CommandChecks {
public:
    CommandChecks(const CheckedCore& core, Domain& domain, CoreEvents& events, PipeClocks& clocks, UbShadow& ub)
        : core_(core), domain_(domain), events_(events), clocks_(clocks), ub_(ub), watch_(core, domain) {}

    // Checks a command that S issues. `event`: the result of CoreEvents::record_command(). Returns the command with the
    // records to make when it runs.
    [[nodiscard]] std::function<void()> check(const Command& command, std::size_t event, std::function<void()> run);
    void set_atomic_mode(bool on, const SourceLocation& where);
    // Reports an atomic mode that is still on when the kernel ends.
    void check_left_over() const;

private:
    using Address = std::uintptr_t;
    using Padding = std::array<std::vector<UbShadow::Range>, 2>;  // by source

    [[nodiscard]] Access access_of(const Command& command);
    // Returns the padding that the command reads.
    [[nodiscard]] Padding check_sources(const Command& command, const Access& access);
    void spread_padding(const Command& command, const Padding& padding);
    void check_operand(const Operand& operand, bool write, const Access& access);
    void check_global(Address begin, Address end, bool write, const Access& access);
    void check_ub(Address begin, Address end, std::size_t padding, bool write, const Access& access);
    // A copy of one block of 32 bytes, which arrives whole.
    [[nodiscard]] static bool may_poll(const Operand& source);
    // Such a copy, when it has run, acquires the words that it has read.
    [[nodiscard]] std::function<void()> acquiring(const Operand& source, std::function<void()> run);
    // The command, when it has run, records that its target has landed, and releases the words of a small target.
    [[nodiscard]] std::function<void()> landing(const Command& command, const Access& access, std::size_t event,
                                                std::function<void()> run);

    const CheckedCore& core_;
    Domain& domain_;
    CoreEvents& events_;
    PipeClocks& clocks_;
    UbShadow& ub_;
    OperandWatch watch_;
    bool atomic_ = false;
    FindingSide atomic_at_;
};

}  // namespace npushmem::npu::check
