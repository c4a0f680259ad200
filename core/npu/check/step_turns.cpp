// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/step_turns.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <limits>
#include <vector>

#include "core/base/parking.hpp"
#include "core/base/parse.hpp"
#include "npushmem/npu/compare.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::string_view turns_prefix = "job:";

}  // namespace

SharedGuard SharedGuard::of(const explore::Guard& guard) {
    return {guard.word, guard.operand, guard.comparison, static_cast<bool>(guard)};
}

explore::Guard SharedGuard::guard() const {
    if (!exists) return {};
    const auto compare = static_cast<Compare>(comparison);
    return {word, [compare, value = operand](std::uint64_t seen) { return satisfied(seen, compare, value); },
            comparison, operand};
}

void SharedStep::take(const explore::Step& step) {
    accesses.clear();
    after.clear();
    for (const explore::MemoryAccess& access : step.accesses) accesses.add(access);
    for (const explore::StepId& before : step.after) after.add(before);
    guard = SharedGuard::of(step.guard);
    exists = true;
}

explore::Step SharedStep::step() const {
    return {{accesses.begin(), accesses.end()}, {after.begin(), after.end()}, guard.guard()};
}

void StepTurns::notify_scheduler() {
    // Release: pairs with the acquire of the scheduler, which then sees the request.
    events.fetch_add(1, std::memory_order_release);
    wake_sleeper(events);
}

std::string StepTurns::text_of(const SegmentHandle& memory) {
    return fmt::format("{}{}:{}:{}:{}:{}", turns_prefix, memory.process, memory.descriptor, memory.device, memory.inode,
                       memory.bytes);
}

std::optional<SegmentHandle> StepTurns::parse(std::string_view schedule) {
    if (!schedule.starts_with(turns_prefix)) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (const auto& word : split(std::string(schedule.substr(turns_prefix.size())), ':')) {
        const auto number = parse_integer(word, 0, std::numeric_limits<std::int64_t>::max());
        if (!number.ok()) return std::nullopt;
        numbers.push_back(number.value());
    }
    if (numbers.size() != 5 || numbers[4] < static_cast<std::int64_t>(sizeof(StepTurns))) return std::nullopt;
    return SegmentHandle{static_cast<std::int32_t>(numbers[0]), static_cast<std::int32_t>(numbers[1]),
                         static_cast<std::uint64_t>(numbers[2]), static_cast<std::uint64_t>(numbers[3]),
                         static_cast<std::uint64_t>(numbers[4])};
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest) {
    SystemWaitOs().sleep_on(reinterpret_cast<std::uint32_t*>(&word), value, longest);
}

void wake_sleeper(std::atomic<std::uint32_t>& word) {
    (void)::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace npushmem::npu::check
