// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/step_recorder.hpp"

#include <algorithm>

namespace npushmem::npu::check {
namespace {

// Strided operands of more blocks than this count as one range.
constexpr std::size_t max_blocks = 16;

void add_operand(const Operand& operand, bool write, std::vector<explore::MemoryAccess>& accesses) {
    if (operand.address == nullptr || operand.blocks == 0) return;
    const std::uintptr_t begin = number_of(operand.address);
    if (operand.blocks > max_blocks) {
        accesses.push_back({begin, begin + (operand.blocks - 1) * operand.step + operand.bytes, write});
        return;
    }
    for (std::size_t block = 0; block < operand.blocks; ++block)
        accesses.push_back({begin + block * operand.step, begin + block * operand.step + operand.bytes, write});
}

}  // namespace

std::vector<explore::MemoryAccess> StepRecorder::accesses_of(const Command& command) {
    std::vector<explore::MemoryAccess> accesses;
    for (const Operand& source : command.source) add_operand(source, false, accesses);
    add_operand(command.target, true, accesses);
    return accesses;
}

void StepRecorder::add(const std::vector<explore::MemoryAccess>& accesses) {
    for (const explore::MemoryAccess& access : accesses) {
        if (access.write)
            write(access.begin, access.end);
        else
            read(access.begin, access.end);
    }
}

bool StepRecorder::has(Address begin, Address end, bool write) const {
    return std::ranges::any_of(step_.accesses, [&](const explore::MemoryAccess& known) {
        return known.begin == begin && known.end == end && known.write == write;
    });
}

void StepRecorder::wait(const detail::Condition& condition) {
    const auto compare = condition.compare;
    const std::uint64_t value = condition.value;
    step_.guard = {number_of(condition.word),
                   [compare, value](std::uint64_t seen) { return satisfied(seen, compare, value); },
                   static_cast<std::uint32_t>(compare), value};
}

}  // namespace npushmem::npu::check
