#include "topology/policy_nearest.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace npushmem::topology {
namespace {

class TwoPasses {
public:
    TwoPasses(const CostTable& costs, std::size_t rails_per_pe)
        : costs_(costs), rails_per_pe_(rails_per_pe), users_(costs.front().size(), 0) {}

    Choice run() {
        take_nearest();
        move_off_crowded();
        return std::move(choice_);
    }

private:
    void take_nearest() {
        for (std::size_t pe = 0; pe < costs_.size(); ++pe) {
            auto rails = by_class(pe);
            rails.resize(rails_per_pe_);
            for (const std::size_t rail : rails) ++users_[rail];
            choice_.push_back(std::move(rails));
        }
    }

    std::vector<std::size_t> by_class(std::size_t pe) const {
        std::vector<std::size_t> rails(users_.size());
        std::iota(rails.begin(), rails.end(), std::size_t{0});
        std::stable_sort(rails.begin(), rails.end(), [&](std::size_t a, std::size_t b) {
            return costs_[pe][a].distance_class < costs_[pe][b].distance_class;
        });
        return rails;
    }

    void move_off_crowded() {
        for (std::size_t pe = 0; pe < costs_.size(); ++pe) {
            for (auto& rail : choice_[pe]) {
                if (users_[rail] < 2) continue;
                const auto better = less_used(pe, rail);
                if (!better) continue;
                --users_[rail];
                ++users_[*better];
                rail = *better;
            }
        }
    }

    // An equally near rail that would carry less after the move than `rail` does before it.
    std::optional<std::size_t> less_used(std::size_t pe, std::size_t rail) const {
        std::optional<std::size_t> best;
        for (std::size_t other = 0; other < users_.size(); ++other) {
            if (costs_[pe][other].distance_class != costs_[pe][rail].distance_class) continue;
            if (users_[other] + 1 >= users_[rail] || has(pe, other)) continue;
            if (!best || users_[other] < users_[*best]) best = other;
        }
        return best;
    }

    bool has(std::size_t pe, std::size_t rail) const {
        return std::find(choice_[pe].begin(), choice_[pe].end(), rail) != choice_[pe].end();
    }

    const CostTable& costs_;
    std::size_t rails_per_pe_;
    std::vector<std::size_t> users_;
    Choice choice_;
};

}  // namespace

Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe) {
    if (costs.empty() || costs.front().empty()) return Choice(costs.size());
    const std::size_t share = std::max<std::size_t>(1, costs.front().size() / costs.size());
    return TwoPasses(costs, std::min(share, max_per_pe)).run();
}

}  // namespace npushmem::topology
