// Which rank holds which expert: contiguous blocks, as equal as possible. With 256 experts on 3 ranks the blocks are
// 86, 85 and 85, so that every number of ranks works.
#pragma once

#include <cstdint>

namespace npushmem::moe {

class ExpertPlacement {
public:
    // Both at least 1; experts may be fewer than ranks (the last ranks then hold none).
    constexpr ExpertPlacement(std::int32_t experts, std::int32_t ranks)
        : experts_(experts), ranks_(ranks), base_(experts / ranks), larger_(experts % ranks) {}

    [[nodiscard]] constexpr std::int32_t experts() const { return experts_; }
    [[nodiscard]] constexpr std::int32_t ranks() const { return ranks_; }
    [[nodiscard]] constexpr std::int32_t local_experts(std::int32_t rank) const {
        return base_ + (rank < larger_ ? 1 : 0);
    }
    // The first expert of the rank; for rank == ranks() one past the last of all.
    [[nodiscard]] constexpr std::int32_t first_expert(std::int32_t rank) const {
        return rank * base_ + (rank < larger_ ? rank : larger_);
    }
    [[nodiscard]] constexpr std::int32_t rank_of(std::int32_t expert) const {
        const std::int32_t in_larger = larger_ * (base_ + 1);
        return expert < in_larger ? expert / (base_ + 1) : larger_ + (expert - in_larger) / base_;
    }

private:
    std::int32_t experts_;
    std::int32_t ranks_;
    std::int32_t base_;
    std::int32_t larger_;  // the first `larger_` ranks hold base_ + 1 experts
};

}  // namespace npushmem::moe
