// One MoE layer's communication on one PE: the dispatch, if the configuration has a capacity, and the combine.
#pragma once

#include <memory>

#include "core/moe/combine.hpp"
#include "core/moe/dispatch/dispatch.hpp"

namespace npushmem::moe {

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe.
//
// A call that was started is under way until wait(); meanwhile only wait, reset and destruction are possible. Several
// layers may have calls under way at a time.
class Layer {
public:
    // As Combine::create.
    static Result<std::unique_ptr<Layer>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                 npu::Device& device, const Status& local_status = {});
    Layer(const Layer&) = delete;
    Layer& operator=(const Layer&) = delete;
    ~Layer();

    // Dispatch::run, and then its plan is the combine's. A failure of it is one of the combine as well, and the other
    // way round: no rank waits for a rank of which one has failed, whichever of them it calls.
    Status dispatch(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    // Combine::combine.
    Status combine_rows(const std::byte* x, std::byte* out);
    // The same without waiting for other ranks; what `in`, `own`, x and out point to is the layer's until wait().
    Status start_dispatch(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    Status start_combine(const std::byte* x, std::byte* out);
    // The result of what is under way; ok if nothing is.
    Status wait();
    // The layer is as after create: no routing, and the ranks in step, whatever has failed before.
    Status reset();

    // Ok, or that a call is under way, and what to do.
    [[nodiscard]] Status idle() const;
    [[nodiscard]] Combine& combine() { return *combine_; }
    // Where dispatch puts rows; null without a capacity.
    [[nodiscard]] std::byte* x() const { return dispatch_ != nullptr ? dispatch_->x() : nullptr; }

private:
    enum class Call { none, dispatch, combine };

    Layer() = default;
    template <class Step>
    Status run_step(Call call, const Step& step);
    Status finish_dispatch();

    std::unique_ptr<Combine> combine_;
    std::unique_ptr<Dispatch> dispatch_;  // null: the capacity is 0
    Call pending_call_ = Call::none;
    RankRouting own_;  // of the dispatch under way
};

}  // namespace npushmem::moe
