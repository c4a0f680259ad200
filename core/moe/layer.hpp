// SPDX-License-Identifier: BSD-3-Clause
// One MoE layer's communication on one PE: the dispatch, if the configuration has a capacity, and the combine.
#pragma once

#include <memory>

#include "core/moe/combine.hpp"
#include "core/moe/dispatch/dispatch.hpp"

namespace npushmem::moe {

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe.
//
// A started call runs until wait(); meanwhile only wait, reset and destruction are allowed. Several layers may have
// running calls at the same time.
class Layer {
public:
    // Like Combine::create.
    static Result<std::unique_ptr<Layer>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                 npu::Device& device, const Status& local_status = {});
    Layer(const Layer&) = delete;
    Layer& operator=(const Layer&) = delete;
    ~Layer();

    // Dispatch::run; the combine then uses its plan. A failure of the dispatch is also a failure of the combine, and
    // vice versa: no rank waits for a rank whose dispatch or combine has failed.
    Status dispatch(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    // Combine::combine.
    Status combine_rows(const std::byte* x, std::byte* out);
    // The same without waiting for other ranks. The memory of `in`, `own`, x and out belongs to the layer until wait().
    Status start_dispatch(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    Status start_combine(const std::byte* x, std::byte* out);
    // Waits for the running call and returns its result; ok if none runs.
    Status wait();
    // Resets the layer to its state after create: no routing, and the ranks in step, after any failure.
    Status reset();

    // Ok, or an error that names the running call.
    [[nodiscard]] Status idle() const;
    [[nodiscard]] Combine& combine() { return *combine_; }
    // The memory into which dispatch puts rows; null without a capacity.
    [[nodiscard]] std::byte* x() const { return dispatch_ != nullptr ? dispatch_->x() : nullptr; }
    // The experts' rows after a dispatch, in the order of the plan: x(), or with one row per rank a copy that each call
    // makes anew. Fails without the memory for it.
    Result<std::byte*> expert_rows();

private:
    enum class Call { none, dispatch, combine };

    Layer() = default;
    template <class Step>
    Status run_step(Call call, const Step& step);
    Status finish_dispatch();
    [[nodiscard]] Status check_rows(const std::byte* x_of_caller) const;

    std::unique_ptr<Combine> combine_;
    std::unique_ptr<Dispatch> dispatch_;  // null: the capacity is 0
    PrivateRows expert_rows_;
    Call pending_call_ = Call::none;
    RankRouting own_;  // of the running dispatch
};

}  // namespace npushmem::moe
