// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/rank_mask.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace npushmem::moe {

Result<RankMask> RankMask::create(const ExpertPlacement& all, std::vector<std::int32_t> remaining,
                                  std::span<const std::int32_t> substitutes) {
    RankMask mask(all);
    mask.to_layer_.assign(static_cast<std::size_t>(all.experts()), no_expert);
    mask.experts_ = 0;
    for (const std::int32_t rank : remaining)
        for (std::int32_t expert = all.first_expert(rank); expert < all.first_expert(rank + 1); ++expert)
            mask.to_layer_[static_cast<std::size_t>(expert)] = mask.experts_++;
    if (mask.experts_ == 0)
        return Status{Code::argument,
                      fmt::format("moe: none of the {} experts is on a rank that goes on", all.experts())};
    const std::vector<std::int32_t> present = mask.to_layer_;
    for (std::size_t expert = 0; expert < substitutes.size(); ++expert) {
        const std::int32_t substitute = substitutes[expert];
        if (present[expert] != no_expert || substitute == no_expert) continue;
        if (substitute < 0 || substitute >= all.experts() || present[static_cast<std::size_t>(substitute)] == no_expert)
            return Status{
                Code::argument,
                fmt::format("moe: the substitute of expert {} is {}, which is no expert of a rank that goes on", expert,
                            substitute)};
        mask.to_layer_[expert] = present[static_cast<std::size_t>(substitute)];
    }
    if (static_cast<std::int32_t>(remaining.size()) < all.ranks()) mask.remaining_ = std::move(remaining);
    return mask;
}

RankMask::Tables RankMask::widened(std::span<const std::int32_t> offsets, std::span<const std::int32_t> lengths) const {
    Tables wide;
    std::int32_t end = 0;
    for (std::size_t i = 0; i < offsets.size();) {
        end = offsets[i];  // the expert's first row: there may be a gap before it
        for (std::int32_t rank = 0; rank < all_.ranks(); ++rank) {
            const bool goes_on = std::ranges::binary_search(remaining_, rank);
            wide.offsets.push_back(goes_on ? offsets[i] : end);
            wide.lengths.push_back(goes_on ? lengths[i] : 0);
            end = wide.offsets.back() + wide.lengths.back();
            if (goes_on) ++i;
        }
    }
    return wide;
}

Result<RankMask::Tables> RankMask::narrowed(std::span<const std::int32_t> offsets,
                                            std::span<const std::int32_t> lengths) const {
    Tables narrow;
    const auto ranks = static_cast<std::size_t>(all_.ranks());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        if (std::ranges::binary_search(remaining_, static_cast<std::int32_t>(i % ranks))) {
            narrow.offsets.push_back(offsets[i]);
            narrow.lengths.push_back(lengths[i]);
        } else if (lengths[i] != 0) {
            return Status{Code::argument,
                          fmt::format("moe: length_table has {} rows of local expert {} for rank {}, which "
                                      "is masked",
                                      lengths[i], i / ranks, i % ranks)};
        }
    }
    return narrow;
}

}  // namespace npushmem::moe
