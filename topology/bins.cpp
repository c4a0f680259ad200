#include "topology/bins.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::topology {
namespace {

using Kind = std::pair<std::uint64_t, bool>;  // rate, and whether half an item is there

// Half items per rate: compared by multiplying crosswise. Rates stay far below 2^50, items below 2^13, so nothing
// overflows.
struct Quotient {
    std::uint64_t halves;
    std::uint64_t rate;
    std::size_t kind;
};

bool less(const Quotient& a, const Quotient& b) { return a.halves * b.rate < b.halves * a.rate; }

// In units of a megabit, which also keeps bits per second within the bound above.
constexpr std::uint64_t unit = 1'000'000;

std::vector<std::uint64_t> known_rates(const Bins& bins) {
    std::vector<std::uint64_t> rates(bins.load.size(), 1);
    std::uint64_t slowest = 0;
    for (const auto rate : bins.rates) {
        if (rate != 0 && (slowest == 0 || rate < slowest)) slowest = rate;
    }
    if (slowest == 0) return rates;
    const std::uint64_t divisor = slowest >= unit ? unit : 1;
    for (std::size_t i = 0; i < bins.rates.size(); ++i)
        rates[i] = (bins.rates[i] == 0 ? slowest : bins.rates[i]) / divisor;
    return rates;
}

std::vector<Kind> kinds_of(const Bins& bins) {
    std::vector<Kind> kinds;
    for (const auto rate : known_rates(bins)) {
        const std::size_t bin = kinds.size();
        kinds.emplace_back(rate, !bins.half.empty() && bins.half[bin]);
    }
    return kinds;
}

std::vector<Quotient> sorted_quotients(const std::vector<Kind>& kinds, std::size_t items) {
    std::vector<Quotient> out;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const auto& [rate, half] = kinds[kind];
        for (std::size_t count = 1; count <= items; ++count) out.push_back({2 * count + (half ? 1 : 0), rate, kind});
    }
    std::stable_sort(out.begin(), out.end(), less);
    return out;
}

}  // namespace

LoadCosts::LoadCosts(const Bins& bins, std::size_t items) {
    const auto kinds = kinds_of(bins);
    auto distinct = kinds;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const auto& kind : kinds) {
        const auto at = std::lower_bound(distinct.begin(), distinct.end(), kind);
        kind_of_bin_.push_back(static_cast<std::size_t>(at - distinct.begin()));
    }
    const std::size_t carried = bins.load.empty() ? 0 : *std::max_element(bins.load.begin(), bins.load.end());
    const auto quotients = sorted_quotients(distinct, carried + items);
    costs_of_kind_.resize(distinct.size());
    std::int64_t place = 0;
    for (std::size_t i = 0; i < quotients.size(); ++i) {
        if (i == 0 || less(quotients[i - 1], quotients[i])) ++place;
        costs_of_kind_[quotients[i].kind].push_back(place);
    }
}

}  // namespace npushmem::topology
