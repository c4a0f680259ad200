// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/processes/step_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/base/parse.hpp"
#include "npushmem/npu/compare.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::string_view turns_prefix = "job:";

// Ranges of this alignment contain accesses of one PE's memory only.
constexpr unsigned range_bits = 40;

// For each PE, and for reads and writes, one range that contains all accesses: the exploration takes more steps for
// dependent than are.
std::vector<explore::MemoryAccess> ranges_of(const std::vector<explore::MemoryAccess>& accesses) {
    std::map<std::pair<std::uint64_t, bool>, explore::MemoryAccess> ranges;
    for (const explore::MemoryAccess& access : accesses) {
        explore::MemoryAccess& range =
            ranges.try_emplace({access.begin >> range_bits, access.write}, access).first->second;
        range.begin = std::min(range.begin, access.begin);
        range.end = std::max(range.end, access.end);
        range.before.reset();
    }
    std::vector<explore::MemoryAccess> all;
    for (const auto& [key, range] : ranges) all.push_back(range);
    return all;
}

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
    const bool fits = step.accesses.size() <= max_accesses;
    for (const explore::MemoryAccess& access : fits ? step.accesses : ranges_of(step.accesses)) accesses.add(access);
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

// Release: who learns what the host does next, learns this too.
void StepTurns::publish_launches(int pe, std::size_t unfinished) {
    launches[static_cast<std::size_t>(pe)].store(unfinished, std::memory_order_release);
    notify_scheduler();
}

void StepTurns::publish_synchronizing(int pe, bool waits) {
    host_synchronizes[static_cast<std::size_t>(pe)].store(waits, std::memory_order_release);
    notify_scheduler();
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

void sleep_on(WaitOs& os, std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest) {
    os.sleep_on(reinterpret_cast<std::uint32_t*>(&word), value, longest);
}

void wake_sleeper(std::atomic<std::uint32_t>& word) {
    (void)wake_sleepers_on(reinterpret_cast<std::uint32_t*>(&word), std::numeric_limits<std::uint32_t>::max());
}

}  // namespace npushmem::npu::check
