// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/combine_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/base/host_facts.hpp"

namespace npushmem::moe {

namespace {

// Calls visit(local expert, rank, slot) for every choice of an expert that `self` holds, in the order rank, token, k.
template <class Visit>
void for_each_row(std::span<const RankRouting> routing, const ExpertPlacement& placement, std::int32_t self,
                  const Visit& visit) {
    const std::int32_t first = placement.first_expert(self);
    const std::int32_t last = placement.first_expert(self + 1);
    for (std::size_t rank = 0; rank < routing.size(); ++rank) {
        const auto& ids = routing[rank].experts;
        for (std::size_t slot = 0; slot < ids.size(); ++slot) {
            if (ids[slot] >= first && ids[slot] < last) {
                visit(ids[slot] - first, static_cast<std::int32_t>(rank), static_cast<std::uint32_t>(slot));
            }
        }
    }
}

// Fills the offsets from the lengths; the sum is kept in 64 bits so that an overflow of int32 shows.
std::uint64_t fill_offsets(CombinePlan& plan, std::int32_t alignment) {
    std::uint64_t next = 0;
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        for (std::size_t i = plan.entry(expert, 0); i < plan.entry(expert + 1, 0); ++i) {
            plan.offset_table[i] = static_cast<std::int32_t>(next);
            next += static_cast<std::uint64_t>(plan.length_table[i]);
        }
        next = rounded_up(next, static_cast<std::uint64_t>(alignment));
    }
    return next;
}

}  // namespace

Rows CombinePlan::rows_to(std::int32_t rank) const {
    Rows total;
    for (std::int32_t expert = 0; expert < local_experts; ++expert) total += fragment(expert, rank).count;
    return total;
}

Rows CombinePlan::rows_of_expert(std::int32_t expert) const {
    Rows total;
    for (std::int32_t rank = 0; rank < ranks; ++rank) total += fragment(expert, rank).count;
    return total;
}

CombinePlan empty_plan(const ExpertPlacement& placement, std::int32_t self) {
    CombinePlan plan;
    plan.local_experts = placement.local_experts(self);
    plan.ranks = placement.ranks();
    plan.first_expert = placement.first_expert(self);
    const std::size_t entries = plan.entry(plan.local_experts, 0);
    plan.offset_table.assign(entries, 0);
    plan.length_table.assign(entries, 0);
    return plan;
}

namespace {

// for_each(visit) calls visit(local expert, rank, slot) for every row, in the order rank, token, k.
template <class ForEach>
Result<CombinePlan> plan_of_rows(const ExpertPlacement& placement, std::int32_t self, std::int32_t alignment,
                                 const ForEach& for_each) {
    CombinePlan plan = empty_plan(placement, self);
    for_each([&](std::int32_t e, std::int32_t r, std::uint32_t) { ++plan.length_table[plan.entry(e, r)]; });
    plan.rows = Rows{fill_offsets(plan, alignment)};
    if (plan.rows.value() > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        return Status{Code::range, fmt::format("rank {} would hold {} rows, more than a 32-bit table can point to; "
                                               "use fewer tokens per call or more ranks",
                                               self, plan.rows.value())};
    }
    plan.slots.assign(plan.rows.value(), no_slot);
    std::vector<std::int32_t> cursor = plan.offset_table;
    for_each([&](std::int32_t e, std::int32_t r, std::uint32_t slot) {
        plan.slots[static_cast<std::size_t>(cursor[plan.entry(e, r)]++)] = slot;
    });
    return plan;
}

}  // namespace

Result<CombinePlan> build_combine_plan(std::span<const RankRouting> routing, const ExpertPlacement& placement,
                                       std::int32_t self, std::int32_t alignment) {
    return plan_of_rows(placement, self, alignment,
                        [&](const auto& visit) { for_each_row(routing, placement, self, visit); });
}

Result<CombinePlan> build_combine_plan(const CombinePlan& sent, std::int32_t width, std::span<const Choice> choices,
                                       std::int32_t top_k, const ExpertPlacement& placement, std::int32_t self,
                                       std::int32_t alignment) {
    const std::int32_t first = placement.first_expert(self);
    const std::int32_t last = placement.first_expert(self + 1);
    const auto each = static_cast<std::uint32_t>(top_k);
    return plan_of_rows(placement, self, alignment, [&](const auto& visit) {
        for (std::int32_t rank = 0; rank < sent.ranks; ++rank) {
            const Fragment rows = sent.fragment(0, rank);
            for (std::uint64_t row = rows.first.value(); row < (rows.first + rows.count).value(); ++row) {
                const std::uint32_t token = sent.slots[row] / static_cast<std::uint32_t>(width);
                for (std::uint32_t k = 0; k < each; ++k) {
                    const std::int32_t id = choices[row * each + k].expert;
                    if (id >= first && id < last) visit(id - first, rank, token * each + k);
                }
            }
        }
    });
}

namespace {

std::string where(const CombinePlan& plan, std::int32_t expert, std::int32_t rank) {
    return fmt::format("expert {} (local {}), rank {}", plan.first_expert + expert, expert, rank);
}

template <class Check>
Status for_each_fragment(const CombinePlan& plan, const Check& check) {
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
            if (Status status = check(expert, rank); !status.ok()) return status;
        }
    }
    return {};
}

Status check_sizes(const CombinePlan& plan) {
    const std::size_t entries = plan.entry(plan.local_experts, 0);
    if (plan.offset_table.size() == entries && plan.length_table.size() == entries) return {};
    return {Code::argument,
            fmt::format("the tables must have {} entries ({} local experts, {} ranks) but offset_table has {} and "
                        "length_table {}",
                        entries, plan.local_experts, plan.ranks, plan.offset_table.size(), plan.length_table.size())};
}

Status check_inside(const CombinePlan& plan, std::int32_t expert, std::int32_t rank) {
    const std::int64_t offset = plan.offset_table[plan.entry(expert, rank)];
    const std::int64_t length = plan.length_table[plan.entry(expert, rank)];
    const auto rows = static_cast<std::int64_t>(plan.rows.value());
    if (length == 0) return {};
    if (length < 0) {
        return {Code::range, fmt::format("{}: length_table says {} rows; a length cannot be negative",
                                         where(plan, expert, rank), length)};
    }
    if (offset >= 0 && offset + length <= rows) return {};
    return {Code::range, fmt::format("{}: rows {}..{} are outside x, which has {} rows", where(plan, expert, rank),
                                     offset, offset + length - 1, rows)};
}

struct PlanExtent {
    std::int32_t first;
    std::int32_t end;
    std::int32_t expert;
    std::int32_t rank;
};

std::vector<PlanExtent> sorted_extents(const CombinePlan& plan) {
    std::vector<PlanExtent> extents;
    (void)for_each_fragment(plan, [&](std::int32_t expert, std::int32_t rank) {
        const std::size_t at = plan.entry(expert, rank);
        if (plan.length_table[at] > 0) {
            extents.push_back({plan.offset_table[at], plan.offset_table[at] + plan.length_table[at], expert, rank});
        }
        return Status{};
    });
    std::ranges::sort(extents, {}, &PlanExtent::first);
    return extents;
}

Status check_overlap(const CombinePlan& plan) {
    const std::vector<PlanExtent> extents = sorted_extents(plan);
    for (std::size_t i = 1; i < extents.size(); ++i) {
        const PlanExtent& a = extents[i - 1];
        const PlanExtent& b = extents[i];
        if (b.first >= a.end) continue;
        return {Code::argument, fmt::format("row {} of x belongs both to {} and to {}; fragments must not overlap",
                                            b.first, where(plan, a.expert, a.rank), where(plan, b.expert, b.rank))};
    }
    return {};
}

Status check_capacity(const CombinePlan& plan, std::int32_t rank, Rows capacity) {
    Rows rows;
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        rows += plan.fragment(expert, rank).count;
        if (rows <= capacity) continue;
        return {Code::range, fmt::format("{}: with these, {} rows would go to rank {} from this PE alone, above its "
                                         "capacity of {}; raise it or send fewer",
                                         where(plan, expert, rank), rows.value(), rank, capacity.value())};
    }
    return {};
}

Status check_capacities(const CombinePlan& plan, Rows capacity) {
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
        if (Status status = check_capacity(plan, rank, capacity); !status.ok()) return status;
    }
    return {};
}

// Checks one fragment's slots against the routing of the receiving rank.
class SlotCheck {
public:
    SlotCheck(const CombinePlan& plan, std::span<const std::int32_t> ids, std::int32_t rank)
        : plan_(plan), ids_(ids), rank_(rank), seen_(ids.size(), false) {}

    Status operator()(std::int32_t expert) {
        const Fragment fragment = plan_.fragment(expert, rank_);
        if (Status status = check_count(expert, fragment.count.value()); !status.ok()) return status;
        for (std::uint64_t i = 0; i < fragment.count.value(); ++i) {
            if (Status status = check_row(expert, fragment.first.value() + i); !status.ok()) return status;
        }
        return {};
    }

private:
    Status check_count(std::int32_t expert, std::uint64_t count) const {
        const auto expected = static_cast<std::uint64_t>(std::ranges::count(ids_, plan_.first_expert + expert));
        if (count == expected) return {};
        return {Code::mismatch,
                fmt::format("{}: length_table says {} rows but the routing of rank {} sends that expert {}",
                            where(plan_, expert, rank_), count, rank_, expected)};
    }

    Status check_row(std::int32_t expert, std::uint64_t row) {
        const std::uint32_t slot = plan_.slots[row];
        if (slot >= ids_.size())
            return refuse(expert, row, slot, fmt::format("rank {} has {} slots", rank_, ids_.size()));
        if (ids_[slot] != plan_.first_expert + expert) {
            return refuse(expert, row, slot, fmt::format("that choice went to expert {}", ids_[slot]));
        }
        if (seen_[slot]) return refuse(expert, row, slot, "another row has it already");
        seen_[slot] = true;
        return {};
    }

    [[nodiscard]] Status refuse(std::int32_t expert, std::uint64_t row, std::uint32_t slot,
                                const std::string& why) const {
        return {Code::argument,
                fmt::format("{}: row {} of x is for slot {}, but {}", where(plan_, expert, rank_), row, slot, why)};
    }

    const CombinePlan& plan_;
    std::span<const std::int32_t> ids_;
    std::int32_t rank_;
    std::vector<bool> seen_;
};

}  // namespace

Status check_tables(const CombinePlan& plan, Rows capacity) {
    if (Status status = check_sizes(plan); !status.ok()) return status;
    const auto inside = [&](std::int32_t expert, std::int32_t rank) { return check_inside(plan, expert, rank); };
    if (Status status = for_each_fragment(plan, inside); !status.ok()) return status;
    if (Status status = check_overlap(plan); !status.ok()) return status;
    return check_capacities(plan, capacity);
}

Status check_slots(const CombinePlan& plan, std::span<const RankRouting> routing) {
    if (plan.slots.size() != plan.rows.value()) {
        return {Code::argument, fmt::format("{} slots for the {} rows of x; give one slot per row", plan.slots.size(),
                                            plan.rows.value())};
    }
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
        SlotCheck check(plan, routing[static_cast<std::size_t>(rank)].experts, rank);
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
            if (Status status = check(expert); !status.ok()) return status;
        }
    }
    return {};
}

Status check_order(const CombinePlan& plan) {
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
            const Fragment fragment = plan.fragment(expert, rank);
            const std::uint64_t end = fragment.first.value() + fragment.count.value();
            for (std::uint64_t row = fragment.first.value() + 1; row < end; ++row) {
                if (plan.slots[row - 1] < plan.slots[row]) continue;
                return {
                    Code::unsupported,
                    fmt::format("expert {} (local {}), rank {}: row {} of x is for slot {} but the row before it "
                                "for slot {}; mode stream needs the rows of a fragment in the order of slots",
                                plan.first_expert + expert, expert, rank, row, plan.slots[row], plan.slots[row - 1])};
            }
        }
    }
    return {};
}

namespace {

constexpr std::uint64_t header = 128;

}  // namespace

Bytes RoutingExchange::size(const CombineConfig& config) {
    const std::uint64_t arrays = config.rows_per == RowsPer::rank ? 2 : 1;
    return aligned_up(Bytes{header} + bytes_of(config.slots() * arrays, Bytes{sizeof(std::int32_t)}), header);
}

std::byte* RoutingExchange::weights() const {
    return block_ + header + bytes_of(config_.slots(), Bytes{sizeof(std::int32_t)}).value();
}

void RoutingExchange::publish(const RankRouting& own) {
    const std::uint64_t count = own.experts.size();
    std::memcpy(block_, &count, sizeof count);
    if (count == 0) return;
    std::memcpy(block_ + header, own.experts.data(), own.experts.size_bytes());
    if (shares_weights()) std::memcpy(weights(), own.weights.data(), own.weights.size_bytes());
}

Status RoutingExchange::collect() {
    ids_.assign(static_cast<std::size_t>(memory_.n_pes()), {});
    weights_.assign(ids_.size(), {});
    views_.clear();
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        if (Status status = collect_from(rank); !status.ok()) return status;
    }
    return {};
}

Status RoutingExchange::collect_from(int rank) {
    std::uint64_t count = 0;
    if (Status status = memory_.fetch(&count, block_, Bytes{sizeof count}, rank); !status.ok()) return status;
    std::vector<std::int32_t>& ids = ids_[static_cast<std::size_t>(rank)];
    std::vector<float>& shared = weights_[static_cast<std::size_t>(rank)];
    ids.resize(count);
    if (shares_weights()) shared.resize(count);
    views_.push_back({ids, shared});
    if (count == 0) return {};
    const Bytes bytes{count * sizeof(std::int32_t)};
    Status status = memory_.fetch(ids.data(), block_ + header, bytes, rank);
    if (!status.ok() || !shares_weights()) return status;
    return memory_.fetch(shared.data(), weights(), bytes, rank);
}

}  // namespace npushmem::moe
