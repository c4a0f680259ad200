// The routing of a rank's tokens, and the plan by which the rank returns rows to all ranks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/stream/row_order.hpp"

namespace npushmem::moe {

// Keeps routing, plan and order of arrival consistent: they always belong to the same tokens of all ranks. They come
// from an exchange of all routings, or from a dispatch. It keeps copies, so that the caller's tables may change.
class RoutedPlan {
public:
    // `exchange`: RoutingExchange::size symmetric bytes. `memory` and `config` must outlive the object.
    RoutedPlan(const CombineConfig& config, SymmetricMemory& memory, std::byte* exchange);

    // Not collective. Publishes this rank's routing; other ranks may collect it after the next barrier.
    void publish(const RankRouting& own) { exchange_.publish(own); }
    // Builds the plan from the routings of all ranks. Call it after a barrier.
    Status collect(const RankRouting& own);
    // Takes over the plan of a dispatch. No replace() is possible then, because the other ranks' routings are unknown.
    void adopt(CombinePlan plan, const RankRouting& own);
    // Rejects a plan for which the tables differ from the collected routings.
    [[nodiscard]] Status check(const CombinePlan& plan) const;
    // `plan` has passed check().
    void replace(CombinePlan plan) { plan_ = std::move(plan); }
    // Removes routing and plan.
    void clear();

    [[nodiscard]] bool is_set() const { return routed_; }
    [[nodiscard]] const CombinePlan& plan() const { return plan_; }
    // Modes stream and chunked.
    [[nodiscard]] const RowOrder& order() const { return order_; }
    [[nodiscard]] Tokens tokens() const { return tokens_; }
    [[nodiscard]] const std::vector<std::int32_t>& experts() const { return experts_; }
    [[nodiscard]] const std::vector<float>& weights() const { return weights_; }

private:
    const CombineConfig& config_;
    int my_pe_;
    ExpertPlacement placement_;
    RoutingExchange exchange_;
    CombinePlan plan_;
    RowOrder order_;
    Tokens tokens_;
    std::vector<std::int32_t> experts_;
    std::vector<float> weights_;
    bool routed_ = false;
    bool collected_ = false;  // the exchange holds the routing of all ranks
};

}  // namespace npushmem::moe
