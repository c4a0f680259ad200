#include "core/moe/routed_plan.hpp"

#include <utility>

namespace npushmem::moe {

RoutedPlan::RoutedPlan(const CombineConfig& config, SymmetricMemory& memory, std::byte* exchange)
    : config_(config),
      my_pe_(memory.my_pe()),
      placement_(config.experts, memory.n_pes()),
      exchange_(memory, exchange) {}

Status RoutedPlan::collect(const RankRouting& own) {
    routed_ = collected_ = false;
    if (Status s = exchange_.collect(); !s.ok()) return s;
    auto plan = build_combine_plan(exchange_.all(), placement_, my_pe_);
    if (!plan.ok()) return plan.status();
    adopt(std::move(plan).value(), own);
    collected_ = true;
    return {};
}

void RoutedPlan::adopt(CombinePlan plan, const RankRouting& own) {
    plan_ = std::move(plan);
    if (config_.streams()) order_ = row_order(own.experts, placement_, config_.chunk_slots(), config_.chunks());
    tokens_ = Tokens{own.tokens(config_.top_k)};
    experts_.assign(own.experts.begin(), own.experts.end());
    weights_.assign(own.weights.begin(), own.weights.end());
    routed_ = true;
    collected_ = false;
}

Status RoutedPlan::check(const CombinePlan& plan) const {
    if (!collected_) return {Code::state, "set the routing before a plan"};
    if (Status s = check_tables(plan, config_.slots()); !s.ok()) return s;
    if (Status s = check_slots(plan, exchange_.all()); !s.ok() || !config_.streams()) return s;
    return check_order(plan);
}

void RoutedPlan::clear() {
    routed_ = collected_ = false;
    plan_ = {};
    tokens_ = {};
    order_ = {};
}

}  // namespace npushmem::moe
