// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/layer.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace npushmem::moe {

Result<std::unique_ptr<Layer>> Layer::create(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                             const Status& local_status) {
    auto combine = Combine::create(config, memory, device, local_status);
    if (!combine.ok()) return combine.status();
    std::unique_ptr<Layer> layer(new Layer);
    layer->combine_ = std::move(combine).value();
    if (config.capacity == 0) return layer;
    auto dispatch = Dispatch::create(config, memory, device, layer->combine_->failures());
    if (!dispatch.ok()) return dispatch.status();
    layer->dispatch_ = std::move(dispatch).value();
    return layer;
}

// Other ranks may wait for rows that this rank has not sent yet.
Layer::~Layer() { static_cast<void>(wait()); }

// Runs a step of a call. If it leaves the ranks out of step, also signals the abort to ranks that wait in the other
// kind of call.
template <class Step>
Status Layer::run_step(Call call, const Step& step) {
    const bool in_step = combine_->failures().handle_status().ok();
    Status status = step();
    if (!in_step || combine_->failures().handle_status().ok()) return status;
    if (call == Call::dispatch) combine_->signal_abort();
    if (call == Call::combine && dispatch_ != nullptr) dispatch_->signal_abort();
    return status;
}

Status Layer::idle() const {
    if (pending_call_ == Call::none) return {};
    return {Code::state, fmt::format("moe: a {} is under way on this handle; wait for it first",
                                     pending_call_ == Call::dispatch ? "dispatch" : "combine")};
}

Status Layer::start_dispatch(const std::byte* in, const RankRouting& own, const Status& local_status) {
    if (Status s = idle(); !s.ok()) return s;
    if (dispatch_ == nullptr) {
        return {Code::state,
                "moe: this handle was created with capacity 0, so it has no memory for a dispatch; give the "
                "most rows that one PE may receive"};
    }
    Status status = run_step(Call::dispatch, [&] { return dispatch_->start(in, own, local_status); });
    if (!status.ok()) return status;
    pending_call_ = Call::dispatch;
    own_ = own;
    return status;
}

Status Layer::start_combine(const std::byte* x, std::byte* out) {
    if (Status s = idle(); !s.ok()) return s;
    Status status = run_step(Call::combine, [&] { return combine_->start(x, out); });
    if (status.ok()) pending_call_ = Call::combine;
    return status;
}

Status Layer::finish_dispatch() {
    Status status = dispatch_->finish();
    return status.ok() ? combine_->adopt(dispatch_->take_rows(), own_) : status;
}

std::byte* Layer::expert_rows() {
    const RankRows* rows = combine_->rank_rows();
    if (rows == nullptr) return x();
    const std::size_t row = combine_->config().dispatched_row().value();
    const std::size_t bytes = rows->source.size() * row;
    if (bytes > expert_rows_bytes_) {
        expert_rows_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
        expert_rows_bytes_ = bytes;
    }
    for (std::size_t i = 0; i < rows->source.size(); ++i) {
        std::memcpy(expert_rows_.get() + i * row, x() + static_cast<std::size_t>(rows->source[i]) * row, row);
    }
    return expert_rows_.get();
}

Status Layer::wait() {
    switch (std::exchange(pending_call_, Call::none)) {
        case Call::dispatch: return run_step(Call::dispatch, [&] { return finish_dispatch(); });
        case Call::combine: return run_step(Call::combine, [&] { return combine_->finish(); });
        case Call::none: break;
    }
    return {};
}

Status Layer::dispatch(const std::byte* in, const RankRouting& own, const Status& local_status) {
    Status started = start_dispatch(in, own, local_status);
    return started.ok() ? wait() : started;
}

Status Layer::combine_rows(const std::byte* x, std::byte* out) {
    Status started = start_combine(x, out);
    return started.ok() ? wait() : started;
}

Status Layer::reset() {
    static_cast<void>(wait());
    if (Status s = combine_->reset(); !s.ok()) return s;
    return dispatch_ != nullptr ? dispatch_->reset() : Status{};
}

}  // namespace npushmem::moe
