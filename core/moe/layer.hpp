// One MoE layer's communication on one PE: the dispatch, if the configuration has a capacity, and the combine.
#pragma once

#include <memory>

#include "core/moe/direct_combine.hpp"
#include "core/moe/dispatch/dispatch.hpp"

namespace npushmem::moe {

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe.
class Layer {
public:
    // `memory` and `device` must outlive the object.
    static Result<std::unique_ptr<Layer>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                 npu::Device& device);

    // Dispatch::run, and then its plan is the combine's.
    Status dispatch(const std::byte* in, const RankRouting& own, const Status& opinion = {});
    // The layer is as after create: no routing, and the ranks in step, whatever has failed before.
    Status reset();

    [[nodiscard]] DirectCombine& combine() { return *combine_; }
    // Where dispatch puts rows; null without a capacity.
    [[nodiscard]] std::byte* x() const { return dispatch_ != nullptr ? dispatch_->x() : nullptr; }

private:
    Layer() = default;

    std::unique_ptr<DirectCombine> combine_;
    std::unique_ptr<Dispatch> dispatch_;  // null: the capacity is 0
};

}  // namespace npushmem::moe
