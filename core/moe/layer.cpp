#include "core/moe/layer.hpp"

#include <fmt/format.h>

#include <utility>

namespace npushmem::moe {

Result<std::unique_ptr<Layer>> Layer::create(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                             const Status& opinion) {
    auto combine = Combine::create(config, memory, device, opinion);
    if (!combine.ok()) return combine.status();
    std::unique_ptr<Layer> layer(new Layer);
    layer->combine_ = std::move(combine).value();
    if (config.capacity == 0) return layer;
    auto dispatch = Dispatch::create(config, memory, device, layer->combine_->notes());
    if (!dispatch.ok()) return dispatch.status();
    layer->dispatch_ = std::move(dispatch).value();
    return layer;
}

// The others may wait for rows that are still to be sent.
Layer::~Layer() { static_cast<void>(wait()); }

// Runs a step of a call; when it leaves the ranks out of step, those are told as well that wait in the other call.
template <class Step>
Status Layer::watch(Call call, const Step& step) {
    const bool in_step = combine_->notes().broken().ok();
    Status status = step();
    if (!in_step || combine_->notes().broken().ok()) return status;
    if (call == Call::dispatch) combine_->tell_given_up();
    if (call == Call::combine && dispatch_ != nullptr) dispatch_->tell_given_up();
    return status;
}

Status Layer::idle() const {
    if (under_way_ == Call::none) return {};
    return {Code::state, fmt::format("moe: a {} is under way on this handle; wait for it first",
                                     under_way_ == Call::dispatch ? "dispatch" : "combine")};
}

Status Layer::start_dispatch(const std::byte* in, const RankRouting& own, const Status& opinion) {
    if (Status s = idle(); !s.ok()) return s;
    if (dispatch_ == nullptr) {
        return {Code::state,
                "moe: this handle was created with capacity 0, so it has no memory for a dispatch; give the "
                "most rows that one PE may receive"};
    }
    Status status = watch(Call::dispatch, [&] { return dispatch_->start(in, own, opinion); });
    if (!status.ok()) return status;
    under_way_ = Call::dispatch;
    own_ = own;
    return status;
}

Status Layer::start_bring_back(const std::byte* x, std::byte* out) {
    if (Status s = idle(); !s.ok()) return s;
    Status status = watch(Call::combine, [&] { return combine_->start(x, out); });
    if (status.ok()) under_way_ = Call::combine;
    return status;
}

Status Layer::finish_dispatch() {
    Status status = dispatch_->finish();
    if (status.ok()) combine_->adopt(dispatch_->take_plan(), own_);
    return status;
}

Status Layer::wait() {
    switch (std::exchange(under_way_, Call::none)) {
        case Call::dispatch: return watch(Call::dispatch, [&] { return finish_dispatch(); });
        case Call::combine: return watch(Call::combine, [&] { return combine_->finish(); });
        case Call::none: break;
    }
    return {};
}

Status Layer::dispatch(const std::byte* in, const RankRouting& own, const Status& opinion) {
    Status started = start_dispatch(in, own, opinion);
    return started.ok() ? wait() : started;
}

Status Layer::bring_back(const std::byte* x, std::byte* out) {
    Status started = start_bring_back(x, out);
    return started.ok() ? wait() : started;
}

Status Layer::reset() {
    static_cast<void>(wait());
    if (Status s = combine_->reset(); !s.ok()) return s;
    return dispatch_ != nullptr ? dispatch_->reset() : Status{};
}

}  // namespace npushmem::moe
