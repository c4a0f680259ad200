// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/core/base/interleaver.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace npushmem::testing {
namespace {

void append(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

void land_first(InterleavedWorld& world, InterleavedWorld::Program& program) {
    const auto store = program.late.front();
    program.late.erase(program.late.begin());
    world.words[static_cast<std::size_t>(store.word)] = store.value;
}

// Moves program `own` by one operation; false when it cannot.
bool step(InterleavedWorld& world, int own, const InterleavedPrograms& question) {
    InterleavedMemory memory(world, own, question.ending);
    question.programs[static_cast<std::size_t>(own)](memory);
    auto& program = world.programs[static_cast<std::size_t>(own)];
    if (!memory.stopped()) program.ended = true, program.forgotten = program.results.size();
    return memory.moved() || !memory.stopped();
}

std::vector<InterleavedWorld> successors(const InterleavedWorld& world, const InterleavedPrograms& question) {
    std::vector<InterleavedWorld> out;
    for (std::size_t i = 0; i < world.programs.size(); ++i) {
        if (!world.programs[i].ended) {
            InterleavedWorld next = world;
            if (step(next, static_cast<int>(i), question)) out.push_back(std::move(next));
        }
        if (world.programs[i].late.empty()) continue;
        InterleavedWorld next = world;
        land_first(next, next.programs[i]);
        out.push_back(std::move(next));
    }
    return out;
}

bool all_ended(const InterleavedWorld& world) {
    return std::all_of(world.programs.begin(), world.programs.end(),
                       [](const auto& program) { return program.ended && program.late.empty(); });
}

}  // namespace

std::string InterleavedWorld::key() const {
    std::string out;
    for (const Program& program : programs) {
        append(out, (program.results.size() - program.forgotten) * 2 + (program.ended ? 1 : 0));
        for (std::size_t i = program.forgotten; i < program.results.size(); ++i) append(out, program.results[i]);
        append(out, program.late.size());
        for (const Late& store : program.late)
            append(out, static_cast<std::uint64_t>(store.word)), append(out, store.value);
    }
    for (const std::uint64_t word : words) append(out, word);
    for (const Sleeper& sleeper : asleep) append(out, static_cast<std::uint64_t>(sleeper.program));
    return out;
}

template <class Operation>
std::uint64_t InterleavedMemory::once(Operation&& operation) {
    if (at_ < me().results.size()) return me().results[at_++];
    std::uint64_t result = 0;
    if (stopped_ || moved_ || !operation(result)) {
        stopped_ = true;
        return ending_;
    }
    moved_ = true;
    me().results.push_back(result);
    ++at_;
    return result;
}

template <class Change>
std::uint64_t InterleavedMemory::change(int word, Change&& to) {
    return once([&](std::uint64_t& before) {
        if (!me().late.empty()) return false;
        before = at(word);
        at(word) = to(before);
        return true;
    });
}

void InterleavedMemory::forget() {
    if (!stopped_) me().forgotten = std::max(me().forgotten, at_);
}

std::uint64_t InterleavedMemory::load(int word) {
    return once([&](std::uint64_t& result) {
        result = at(word);
        for (const auto& store : me().late)
            if (store.word == word) result = store.value;
        return true;
    });
}

void InterleavedMemory::store(int word, std::uint64_t value) {
    change(word, [&](std::uint64_t) { return value; });
}

void InterleavedMemory::raise(int word, std::uint64_t value) {
    once([&](std::uint64_t&) {
        if (!me().late.empty()) return false;
        at(word) += value;
        return true;
    });
}

std::uint64_t InterleavedMemory::add(int word, std::uint64_t value) {
    return change(word, [&](std::uint64_t before) { return before + value; });
}

std::uint64_t InterleavedMemory::exchange(int word, std::uint64_t value) {
    return change(word, [&](std::uint64_t) { return value; });
}

std::uint64_t InterleavedMemory::compare_exchange(int word, std::uint64_t expected, std::uint64_t value) {
    return change(word, [&](std::uint64_t before) { return before == expected ? value : before; });
}

void InterleavedMemory::store_late(int word, std::uint64_t value) {
    once([&](std::uint64_t&) {
        me().late.push_back({word, value});
        return true;
    });
}

void InterleavedMemory::wait_equal(int word, std::uint64_t value) {
    once([&](std::uint64_t&) { return at(word) == value; });
}

std::uint64_t InterleavedMemory::wait_reaches(int word, std::uint64_t value) {
    return once([&](std::uint64_t& result) { return (result = at(word)) >= value; });
}

void InterleavedMemory::sleep(int word, std::uint64_t expected) {
    // The kernel compares and starts the sleep in one step; the wake-up is another.
    const std::uint64_t slept = once([&](std::uint64_t& result) {
        if (!me().late.empty()) return false;
        result = at(word) == expected ? 1 : 0;
        if (result == 1) world_->asleep.push_back({own_, word});
        return true;
    });
    if (stopped_ || slept == 0) return;
    once([&](std::uint64_t&) {
        return std::none_of(world_->asleep.begin(), world_->asleep.end(),
                            [&](const InterleavedWorld::Sleeper& one) { return one.program == own_; });
    });
}

void InterleavedMemory::wake(int word, std::uint32_t count) {
    once([&](std::uint64_t&) {
        if (!me().late.empty()) return false;
        auto& asleep = world_->asleep;
        for (std::uint32_t woken = 0; woken < count; ++woken) {
            const auto next = std::find_if(asleep.begin(), asleep.end(),
                                           [&](const InterleavedWorld::Sleeper& one) { return one.word == word; });
            if (next == asleep.end()) break;
            asleep.erase(next);
        }
        return true;
    });
}

Interleavings run_all_interleavings(const InterleavedPrograms& question) {
    Interleavings result;
    InterleavedWorld first;
    first.words = question.words;
    first.programs.resize(question.programs.size());
    std::vector<InterleavedWorld> open{first};
    std::unordered_set<std::string> seen{first.key()};
    while (!open.empty() && result.fault.empty() && result.complete) {
        const InterleavedWorld world = std::move(open.back());
        open.pop_back();
        const bool ended = all_ended(world);
        if (question.check) result.fault = question.check(world, ended);
        auto next = successors(world, question);
        if (next.empty() && !ended && result.fault.empty()) result.fault = "deadlock";
        for (InterleavedWorld& one : next)
            if (seen.insert(one.key()).second) open.push_back(std::move(one));
        result.complete = seen.size() <= question.bound;
    }
    result.states = seen.size();
    return result;
}

}  // namespace npushmem::testing
