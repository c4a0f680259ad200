// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

#include "core/base/parse.hpp"
#include "core/coll/barrier/tuning.hpp"

namespace npushmem::barrier {
namespace {

constexpr std::string_view automatic = "auto";
constexpr std::string_view adaptive = "adaptive";

std::vector<std::string> known_names() {
    std::vector<std::string> names{std::string(automatic), std::string(adaptive)};
    for (const AlgorithmInfo& info : Algorithms::table) names.emplace_back(info.name);
    return names;
}

Status unknown_algorithm(std::string_view text) {
    const auto names = known_names();
    const std::string near = nearest(lowercase(text), names);
    const std::string hint = near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
    return {Code::config, fmt::format("no barrier algorithm is named \"{}\" (expected one of: {}){}", text,
                                      fmt::join(names, ", "), hint)};
}

Result<int> parse_radix(std::string_view name, std::string_view text) {
    int radix = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), radix);
    if (error == std::errc{} && end == text.data() + text.size() && radix >= min_radix && radix <= max_radix)
        return radix;
    return Status{Code::config,
                  fmt::format("\"{}\" is not a radix for {}; expected {} to {}", text, name, min_radix, max_radix)};
}

std::optional<AlgorithmId> find(std::string_view name) {
    for (std::size_t i = 0; i < Algorithms::count; ++i)
        if (Algorithms::table[i].name == name) return AlgorithmId{i};
    return std::nullopt;
}

// The rule of the adaptive component: basic on one node or for few PEs.
Choice choose_adaptively(const BarrierSelectionInput& selection_input) {
    constexpr int few = 32;
    if (selection_input.nodes == 1) return {{basic_id}, "adaptive: all on one node"};
    if (selection_input.members < few) return {{basic_id}, fmt::format("adaptive: fewer than {} PEs", few)};
    return {{recursive_doubling_id}, fmt::format("adaptive: {} PEs on several nodes", selection_input.members)};
}

}  // namespace

std::string name_of(const Plan& plan) {
    const AlgorithmInfo& info = Algorithms::info(plan.id);
    return info.has_radix ? fmt::format("{}:{}", info.name, plan.radix) : std::string(info.name);
}

Result<Plan> parse_plan(std::string_view text) {
    const std::string_view whole = trimmed(text);
    const auto colon = whole.find(':');
    const std::string_view name = whole.substr(0, colon);
    const auto id = find(name);
    if (!id) return unknown_algorithm(name);
    Plan plan{*id};
    if (colon == std::string_view::npos) return plan;
    if (!Algorithms::info(*id).has_radix)
        return Status{Code::config,
                      fmt::format("barrier algorithm {} has no radix, but \"{}\" specifies one", name, whole)};
    auto radix = parse_radix(name, whole.substr(colon + 1));
    if (!radix.ok()) return radix.status();
    plan.radix = radix.value();
    return plan;
}

std::string describe_algorithms() {
    std::string text;
    for (const AlgorithmInfo& info : Algorithms::table)
        text += fmt::format("{:<24} {}\n", fmt::format("{}{}", info.name, info.has_radix ? ":k" : ""), info.summary);
    return text;
}

Status check_members(const Plan& plan, int n) {
    const AlgorithmInfo& info = Algorithms::info(plan.id);
    if (n <= info.max_members) return {};
    return {Code::range, fmt::format("barrier algorithm {} serves teams of at most {} PEs; this one has {}", info.name,
                                     info.max_members, n)};
}

Result<Choice> choose(std::string_view text, const BarrierSelectionInput& selection_input, const Tuning& tuning) {
    const std::string_view name = trimmed(text);
    if (name.empty() || name == automatic) {
        const TuningRule* rule = tuning.find(selection_input);
        if (rule == nullptr) return choose_automatically(selection_input);
        return Choice{rule->plan, fmt::format("line {} of {}", rule->line, tuning.name())};
    }
    if (name == adaptive) return choose_adaptively(selection_input);
    auto plan = parse_plan(name);
    if (!plan.ok()) return plan.status();
    if (Status fits = check_members(plan.value(), selection_input.members); !fits.ok()) return fits;
    return Choice{plan.value(), "NPUSHMEM_BARRIER_ALGO"};
}

// Measured on two cores over mapped memory, medians in us for 4, 8, 16, 32, 64 PEs: shared_counter 1.3, 3.3, 9.3, 20,
// 43; dissemination 1.6, 5.4, 21, 56, 148; tree 3.2, 9.7, 37, 97, 240 and more (a chain of wake-ups twice as long as
// the tree is deep). With one core per PE, dissemination needs log2(n) transfers of a line, the counter n.
Choice choose_automatically(const BarrierSelectionInput& selection_input) {
    if (selection_input.mapped && selection_input.pes_per_core <= 1.0)
        return {{dissemination_id}, "every PE has a core: the fewest rounds win"};
    const std::string crowd = fmt::format("{:.3g} PEs share a core", selection_input.pes_per_core);
    if (selection_input.mapped) return {{shared_counter_id}, crowd + ": one switch per PE wins"};
    if (selection_input.nodes > 1 && selection_input.nodes < selection_input.members)
        return {{hierarchical_id},
                fmt::format("{} PEs on {} nodes: only the leaders use the network", selection_input.members,
                            selection_input.nodes)};
    return {{dissemination_id}, crowd + ", but not all memory is mapped: no member may serve all others"};
}

}  // namespace npushmem::barrier
