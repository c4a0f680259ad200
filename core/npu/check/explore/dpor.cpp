// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/explore/dpor.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace npushmem::npu::check::explore {
namespace {

using ThreadClock = std::vector<std::uint32_t>;

bool contains(const std::vector<ThreadId>& threads, ThreadId thread) {
    return std::ranges::find(threads, thread) != threads.end();
}

std::uint32_t number_in(const ThreadClock& clock, ThreadId thread) {
    const auto at = static_cast<std::size_t>(thread);
    return at < clock.size() ? clock[at] : 0;
}

void set_number(ThreadClock& clock, ThreadId thread, std::uint32_t number) {
    const auto at = static_cast<std::size_t>(thread);
    if (at >= clock.size()) clock.resize(at + 1);
    clock[at] = number;
}

void join(ThreadClock& clock, const ThreadClock& other) {
    if (other.size() > clock.size()) clock.resize(other.size());
    for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool same_accesses(const Step& a, const Step& b) {
    return std::ranges::equal(a.accesses, b.accesses, [](const MemoryAccess& mine, const MemoryAccess& other) {
        return mine.begin == other.begin && mine.end == other.end && mine.write == other.write;
    });
}

// The value of the guard's word before the step; none: not known.
std::optional<std::uint64_t> value_before(const Step& step, const Guard& guard) {
    const MemoryAccess read = guard.read();
    std::optional<std::uint64_t> value;
    for (const MemoryAccess& access : step.accesses) {
        if (!access.conflicts(read)) continue;
        if (!access.before || access.begin != read.begin || access.end != read.end) return std::nullopt;
        if (!value) value = access.before;  // the first write of the step
    }
    return value;
}

void add_place(std::vector<std::size_t>& places, std::size_t place) {
    while (!places.empty() && places.back() >= place) places.pop_back();
    places.push_back(place);
}

}  // namespace

template <class Visit>
bool PlacesByMemory::for_each_line(const Step& step, const Visit& visit) {
    const auto lines_of = [&](const MemoryAccess& access) {
        const std::uint64_t first = access.begin / line;
        const std::uint64_t last = (access.end - 1) / line;
        if (access.begin >= access.end) return true;
        if (last - first >= max_lines) return false;
        for (std::uint64_t number = first; number <= last; ++number) visit(number);
        return true;
    };
    return std::ranges::all_of(step.accesses, lines_of) && (!step.guard || lines_of(step.guard.read()));
}

void PlacesByMemory::add(std::size_t place, const Step& step) {
    const bool all = for_each_line(step, [&](std::uint64_t number) { add_place(by_line_[number], place); });
    if (!all) add_place(long_ones_, place);
}

std::vector<std::size_t> PlacesByMemory::find(std::size_t end, const Step& step) const {
    Places found;
    const auto add = [&](const Places& places) {
        found.insert(found.end(), places.begin(), std::ranges::lower_bound(places, end));
    };
    const bool all = for_each_line(step, [&](std::uint64_t number) {
        if (const auto places = by_line_.find(number); places != by_line_.end()) add(places->second);
    });
    if (!all) {
        found.resize(end);
        std::iota(found.begin(), found.end(), std::size_t{0});
    } else {
        add(long_ones_);
    }
    std::ranges::sort(found, std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());  // clang 14 compiles no ranges::unique
    return found;
}

Dpor::Clock& Dpor::clock_of(ThreadId thread) {
    const auto at = static_cast<std::size_t>(thread);
    if (at >= clocks_.size()) {
        clocks_.resize(at + 1);
        steps_.resize(at + 1);
    }
    return clocks_[at];
}

bool Dpor::untried(const Node& node, ThreadId thread) const {
    return std::ranges::find(node.sleep, thread, &Asleep::thread) == node.sleep.end();
}

bool Dpor::next_run() {
    depth_ = 0;
    redundant_ = false;
    clocks_.clear();
    steps_.clear();
    if (!std::exchange(begun_, true)) return true;
    if (diverged_) return false;
    while (!path_.empty()) {
        Node& node = path_.back();
        if (node.step) node.sleep.push_back({node.chosen, std::exchange(node.step, nullptr)});
        const auto next = std::ranges::find_if(node.backtrack, [&](ThreadId thread) { return untried(node, thread); });
        if (next != node.backtrack.end()) {
            node.chosen = *next;
            return true;
        }
        path_.pop_back();
    }
    return false;
}

std::vector<Dpor::Asleep> Dpor::sleep_after(const Node& node) const {
    std::vector<Asleep> sleep;
    for (const Asleep& asleep : node.sleep)
        if (asleep.thread != node.chosen && !conflict(*asleep.step, *node.step)) sleep.push_back(asleep);
    return sleep;
}

ThreadId Dpor::choose(const std::vector<ThreadId>& enabled, ThreadId last) {
    if (depth_ < path_.size()) {
        if (enabled == path_[depth_].enabled) return path_[depth_].chosen;
        diverged_ = redundant_ = true;
    }
    const std::vector<ThreadId> order = default_order(enabled, last);
    if (redundant_) return order.front();
    find_disabled(enabled);
    Node node;
    if (!path_.empty()) node.sleep = sleep_after(path_.back());
    // What was disabled is another step when it is enabled again.
    std::erase_if(node.sleep, [&](const Asleep& asleep) { return !contains(enabled, asleep.thread); });
    const auto awake = std::ranges::find_if(order, [&](ThreadId thread) { return untried(node, thread); });
    if (awake == order.end()) {
        redundant_ = true;
        ++redundant_runs_;
        return order.front();
    }
    node.enabled = enabled;
    node.chosen = *awake;
    node.backtrack = {*awake};
    path_.push_back(std::move(node));
    return *awake;
}

void Dpor::executed(Step step) {
    if (redundant_) return;
    Node& node = path_[depth_];
    Clock& clock = clock_of(node.chosen);
    if (!node.step)
        begin_step(node, std::move(step));
    else if (!same_accesses(*node.step, step))
        diverged_ = true;
    clock = node.clock;
    steps_[static_cast<std::size_t>(node.chosen)].push_back(depth_++);
}

void Dpor::begin_step(Node& node, Step step) {
    Clock clock = clock_of(node.chosen);
    for (const StepId& before : step.after) {
        const std::size_t place = steps_[static_cast<std::size_t>(before.thread)][before.number - 1];
        join(clock, path_[place].clock);
    }
    if (step.guard) find_guard_races(depth_, node.chosen, step.guard, clock);
    find_races(depth_, node.chosen, step, clock);
    node.number = static_cast<std::uint32_t>(steps_[static_cast<std::size_t>(node.chosen)].size()) + 1;
    set_number(clock, node.chosen, node.number);
    node.clock = std::move(clock);
    places_.add(depth_, step);
    node.step = std::make_shared<const Step>(std::move(step));
}

void Dpor::find_races(std::size_t end, ThreadId thread, const Step& step, Clock& clock) {
    if (step.accesses.empty() && !step.guard) return;
    for (const std::size_t i : places_.find(end, step)) {
        const Node& other = path_[i];
        if (number_in(clock, other.chosen) >= other.number) continue;
        const bool ordinary = accesses_conflict(*other.step, step) || changes_word(step, other.step->guard);
        if (!ordinary && !changes_word(*other.step, step.guard)) continue;
        if (ordinary) reverse(i, end, thread, clock);
        join(clock, other.clock);
    }
}

void Dpor::find_guard_races(std::size_t end, ThreadId thread, const Guard& guard, const Clock& clock) {
    for (const std::size_t i : places_.find(end, {{}, {}, guard})) {
        const Node& other = path_[i];
        if (number_in(clock, other.chosen) >= other.number || !changes_word(*other.step, guard)) continue;
        const std::optional<std::uint64_t> before = value_before(*other.step, guard);
        if (before && !guard.holds(*before)) continue;
        reverse(i, end, thread, clock);
        if (before) return;
    }
}

void Dpor::find_disabled(const std::vector<ThreadId>& enabled) {
    if (path_.empty()) return;
    const Node& before = path_.back();
    for (const ThreadId thread : std::vector(before.enabled)) {
        if (thread == before.chosen || contains(enabled, thread)) continue;
        const Clock clock = clock_of(thread);
        reverse(path_.size() - 1, path_.size(), thread, clock);
    }
}

std::vector<ThreadId> Dpor::initials(std::size_t at, std::size_t end, ThreadId thread, const Clock& clock) const {
    const Node& first = path_[at];
    Clock begins;  // by thread: the number of its first step in the sequence; 0: it has none
    std::vector<ThreadId> found;
    const auto comes_first = [&](ThreadId candidate, const Clock& its_clock) {
        for (std::size_t i = 0; i < begins.size(); ++i)
            if (begins[i] != 0 && number_in(its_clock, static_cast<ThreadId>(i)) >= begins[i]) return false;
        return number_in(begins, candidate) == 0;
    };
    for (std::size_t i = at + 1; i < end; ++i) {
        const Node& node = path_[i];
        if (number_in(node.clock, first.chosen) >= first.number) continue;
        if (comes_first(node.chosen, node.clock)) found.push_back(node.chosen);
        if (number_in(begins, node.chosen) == 0) set_number(begins, node.chosen, node.number);
    }
    if (comes_first(thread, clock)) found.push_back(thread);
    return found;
}

void Dpor::reverse(std::size_t at, std::size_t end, ThreadId thread, const Clock& clock) {
    Node& node = path_[at];
    ThreadId candidate = -1;
    for (const ThreadId initial : initials(at, end, thread, clock)) {
        if (contains(node.backtrack, initial) || !untried(node, initial)) return;
        if (contains(node.enabled, initial)) candidate = initial;
    }
    if (candidate >= 0) node.backtrack.push_back(candidate);
}

void Dpor::end_run(const std::vector<Waiting>& waiting) {
    if (diverged_) return;
    for (const Waiting& wait : waiting) {
        const Clock clock = clock_of(wait.thread);
        find_guard_races(path_.size(), wait.thread, wait.guard, clock);
    }
}

}  // namespace npushmem::npu::check::explore
