#include "core/moe/layer.hpp"

namespace npushmem::moe {

Result<std::unique_ptr<Layer>> Layer::create(const CombineConfig& config, SymmetricMemory& memory,
                                             npu::Device& device) {
    auto combine = DirectCombine::create(config, memory, device);
    if (!combine.ok()) return combine.status();
    std::unique_ptr<Layer> layer(new Layer);
    layer->combine_ = std::move(combine).value();
    if (config.capacity == 0) return layer;
    auto dispatch = Dispatch::create(config, memory, device);
    if (!dispatch.ok()) return dispatch.status();
    layer->dispatch_ = std::move(dispatch).value();
    return layer;
}

Status Layer::dispatch(const std::byte* in, const RankRouting& own, const Status& opinion) {
    if (dispatch_ == nullptr) {
        return {Code::state,
                "moe: this handle was created with capacity 0, so it has no memory for a dispatch; give the "
                "most rows that one PE may receive"};
    }
    if (Status s = dispatch_->run(in, own, opinion); !s.ok()) return s;
    combine_->adopt(dispatch_->take_plan(), own);
    return {};
}

Status Layer::reset() {
    if (Status s = combine_->reset(); !s.ok()) return s;
    return dispatch_ != nullptr ? dispatch_->reset() : Status{};
}

}  // namespace npushmem::moe
