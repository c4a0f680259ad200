// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/programs.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "core/coll/barrier/algorithms.hpp"

namespace npushmem::simulate {
namespace {

using barrier::Algorithms;
using barrier::AwaitedSlot;

// Of the one call that is simulated.
constexpr std::uint64_t generation = 1;

// Records a program that does not depend on fetched values.
class RecordingFabric {
public:
    explicit RecordingFabric(bool mapped) : mapped_(mapped) {}
    Code signal(int member, int slot, std::uint64_t value) {
        operations.push_back({Operation::Kind::signal, {.member = member, .slot = slot}, value});
        return Code::ok;
    }
    Code add(int, int, std::uint64_t, std::uint64_t& before) {
        fetches = true;
        before = 0;
        return Code::ok;
    }
    Code wait(const AwaitedSlot& awaited, std::uint64_t value) {
        operations.push_back({Operation::Kind::wait, awaited, value});
        return Code::ok;
    }
    Code complete() {
        operations.push_back({Operation::Kind::complete, {}, 0});
        return Code::ok;
    }
    [[nodiscard]] bool polls_peers() const { return mapped_; }
    std::vector<Operation> operations;
    bool fetches = false;

private:
    bool mapped_;
};

}  // namespace

Programs::Programs(const barrier::Plan& plan, const Team& team)
    : plan_(plan), team_(team), everyone_(static_cast<std::size_t>(team.members)) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
    for (int member = 0; member < team.members; member += team.per_node) leaders_.push_back(member);
}

barrier::BarrierCall Programs::call_of(int member, barrier::NodeLayout& nodes) const {
    const int node = member / team_.per_node;
    const int first = node * team_.per_node;
    const auto count = static_cast<std::size_t>(std::min(team_.per_node, team_.members - first));
    nodes = {std::span(everyone_).subspan(static_cast<std::size_t>(first), count), member - first, leaders_, node};
    return {team_.members, member, 0, generation, plan_.radix, team_.nodes() > 1 ? &nodes : nullptr};
}

const std::vector<Operation>* Programs::script_of(int member) {
    const auto known = scripts_.find(member);
    if (known != scripts_.end()) return known->second.empty() ? nullptr : &known->second;
    barrier::NodeLayout nodes;
    const barrier::BarrierCall call = call_of(member, nodes);
    RecordingFabric recorder(team_.nodes() == 1);
    (void)Algorithms::run(plan_.id, recorder, call);
    auto& script = scripts_[member];
    if (!recorder.fetches) script = std::move(recorder.operations);
    return script.empty() ? nullptr : &script;
}

bool Programs::polls_others() const {
    constexpr int few = 64;
    for (int member = 0; member < std::min(few, team_.members); ++member) {
        barrier::NodeLayout nodes;
        RecordingFabric recorder(team_.nodes() == 1);
        (void)Algorithms::run(plan_.id, recorder, call_of(member, nodes));
        for (const Operation& one : recorder.operations)
            if (one.kind == Operation::Kind::wait && one.awaited.member != member) return true;
    }
    return false;
}

}  // namespace npushmem::simulate
