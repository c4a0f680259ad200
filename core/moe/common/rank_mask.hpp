// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a layer that go on when others have died. They form a smaller layer, in which ranks and experts have new
// numbers. This class converts between the numbers of the layer that its caller made and those of the smaller one.
//
// The experts stay where they are: the blocks of the remaining ranks are those of an ExpertPlacement, too, because the
// larger blocks come first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

class RankMask {
public:
    // All ranks go on; the numbers are the same.
    explicit RankMask(const ExpertPlacement& all) : all_(all), experts_(all.experts()) {}
    // `remaining`: the ranks that go on, ascending. `substitutes`: for each expert of the others, an expert that gets
    // its tokens, or no_expert; empty: no_expert for all. Rejects ranks without an expert, and substitutes that do not
    // go on.
    static Result<RankMask> create(const ExpertPlacement& all, std::vector<std::int32_t> remaining,
                                   std::span<const std::int32_t> substitutes);

    [[nodiscard]] bool masks_any() const { return !remaining_.empty(); }
    // Of the smaller layer.
    [[nodiscard]] std::int32_t experts() const { return experts_; }
    // expert: no_expert or one of the caller's.
    [[nodiscard]] std::int32_t to_layer(std::int32_t expert) const {
        return masks_any() && expert >= 0 ? to_layer_[static_cast<std::size_t>(expert)] : expert;
    }
    // The caller's number of the first expert of a rank of the smaller layer.
    [[nodiscard]] std::int32_t first_expert(std::int32_t rank) const {
        return all_.first_expert(masks_any() ? remaining_[static_cast<std::size_t>(rank)] : rank);
    }

    // Tables of a plan, [local_experts, ranks], for the caller: with a column for every rank. Those of masked ranks get
    // the offset behind the expert's fragment before them, or else of its first row, and the length 0.
    struct Tables {
        std::vector<std::int32_t> offsets;
        std::vector<std::int32_t> lengths;
        bool operator==(const Tables&) const = default;
    };
    [[nodiscard]] Tables widened(std::span<const std::int32_t> offsets, std::span<const std::int32_t> lengths) const;
    // The reverse. Rejects rows for masked ranks.
    [[nodiscard]] Result<Tables> narrowed(std::span<const std::int32_t> offsets,
                                          std::span<const std::int32_t> lengths) const;
    // Ranks of the caller's tables.
    [[nodiscard]] std::int32_t ranks() const { return all_.ranks(); }

private:
    ExpertPlacement all_;
    std::int32_t experts_;
    std::vector<std::int32_t> remaining_;  // empty: all
    std::vector<std::int32_t> to_layer_;   // per expert of the caller, with the substitutes
};

}  // namespace npushmem::moe
