// SPDX-License-Identifier: BSD-3-Clause
// One MoE layer's communication on one PE: the dispatch, if the configuration has a capacity, and the combine.
#pragma once

#include <memory>
#include <vector>

#include "core/moe/combine.hpp"
#include "core/moe/dispatch/dispatch.hpp"

namespace npushmem::moe {

// The routing of a call, for later calls on the same tokens: of the layer that made it, or of another one of the same
// ranks, experts and rows.
struct RoutedLayout {
    std::shared_ptr<const RoutedRows> rows;
    std::shared_ptr<const RowPlaces> places;  // null: no dispatch made it
    RoutingId id;
    CombineConfig config;  // of the layer
};

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
    // Dispatch::start_cached by the current routing, which a dispatch has made. No weights or slots travel.
    Status start_cached_dispatch(const std::byte* in);
    // Waits for the running call and returns its result; ok if none runs.
    Status wait();
    // Not collective. The current routing.
    Result<RoutedLayout> layout();
    // Makes it the current routing again. All ranks give the layouts of the same call.
    Status set_layout(const RoutedLayout& layout, const Status& local_status = {});

    // Gradients. The current routing is that of a dispatch.
    //
    // Of combine's x and weights, from the gradient of its out. grad_out: [tokens, hidden] of the input type; x,
    // grad_x: [plan().rows, hidden]; grad_weights: [tokens, top_k]. Overwrites the rows of the dispatch.
    Status combine_backward(const std::byte* grad_out, const std::byte* x, std::byte* grad_x, float* grad_weights);
    // Of dispatch's in, from the gradient of its rows.
    Status dispatch_backward(const std::byte* grad_x, std::byte* grad_in);
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
    [[nodiscard]] Status check_dispatched() const;
    [[nodiscard]] Status check_layout(const RoutedLayout& layout) const;
    [[nodiscard]] Status check_rows(const std::byte* x_of_caller) const;
    [[nodiscard]] Status check_gradients(const std::byte* grad_out, const std::byte* x, std::byte* grad_x,
                                         float* grad_weights) const;
    void compute_gradients(const std::byte* x, std::byte* grad_x);
    Status collect_gradients(float* grad_weights);

    std::unique_ptr<Combine> combine_;
    std::unique_ptr<Dispatch> dispatch_;  // null: the capacity is 0
    PrivateRows expert_rows_;
    Call pending_call_ = Call::none;
    RoutingId dispatched_;                     // the routing that the places of the dispatch belong to
    std::shared_ptr<const RowPlaces> places_;  // of the routing places_of_, for its layouts; null: no dispatch made it
    RoutingId places_of_;
    std::vector<std::uint32_t> row_weights_;  // bits of floats: of the rows that combine_backward sends
    std::vector<float> replies_;
    RankRouting own_;  // of the running dispatch
};

}  // namespace npushmem::moe
