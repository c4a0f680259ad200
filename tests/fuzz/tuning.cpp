// SPDX-License-Identifier: BSD-3-Clause
// Decision files of host barriers, and the names of algorithms.
#include "core/coll/barrier/tuning.hpp"

#include "core/coll/barrier/algorithms.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

void check_plan(const barrier::Plan& plan) {
    const auto again = barrier::parse_plan(barrier::name_of(plan));
    require(again.ok(), "the name of a plan is rejected: " + barrier::name_of(plan));
    require(barrier::name_of(again.value()) == barrier::name_of(plan), "a plan changes: " + barrier::name_of(plan));
}

void check_rules(std::string_view text) {
    const auto parsed = barrier::Tuning::parse(text, "input");
    if (!parsed.ok()) return require_message(parsed.status());
    int line = 0;
    for (const auto& rule : parsed.value().rules()) {
        require(rule.line > line, "the lines of rules do not ascend");
        line = rule.line;
        for (const auto* range : {&rule.members, &rule.per_node, &rule.per_core})
            require(range->min >= 0 && range->min <= range->max, "an empty range");
        check_plan(rule.plan);
    }
    for (const int members : {2, 3, 8, 1000}) {
        const auto* found = parsed.value().find({members, 1.0, 1 + members / 4, true});
        require(found == nullptr || found->members.contains(members), "a rule for another team is found");
    }
}

}  // namespace

// The first byte selects the check.
void tuning(Input input) {
    Taker in(input);
    if (in.byte() % 2 == 0) return check_rules(text_of(in.rest()));
    const auto plan = barrier::parse_plan(text_of(in.rest()));
    require_message(plan.status());
    if (plan.ok()) check_plan(plan.value());
}

}  // namespace npushmem::fuzz
