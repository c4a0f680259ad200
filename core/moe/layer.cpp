// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/layer.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace npushmem::moe {

Result<std::unique_ptr<Layer>> Layer::create(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                             const Status& local_status) {
    // Taken before the ranks agree, so that all learn of a failure.
    auto quantised = Dispatch::memory_for_quantised(config);
    auto combine = Combine::create(config, memory, device, local_status.ok() ? quantised.status() : local_status);
    if (!combine.ok()) return combine.status();
    std::unique_ptr<Layer> layer(new Layer);
    layer->combine_ = std::move(combine).value();
    if (config.capacity == 0) return layer;
    auto dispatch = Dispatch::create(config, memory, device, layer->combine_->failures(), std::move(quantised).value());
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
    Status status = run_step(Call::combine, [&] { return combine_->start(x, out, check_rows(x)); });
    if (status.ok()) pending_call_ = Call::combine;
    return status;
}

Status Layer::finish_dispatch() {
    Status status = dispatch_->finish();
    return status.ok() ? combine_->adopt(dispatch_->take_rows(), own_) : status;
}

// A combine would read quantized rows as rows of the input type, which are longer.
Status Layer::check_rows(const std::byte* x_of_caller) const {
    const CombineConfig& config = combine_->config();
    if (dispatch_ == nullptr || config.dispatch_type == NarrowType::none) return {};
    const Extent given{"x", x_of_caller, bytes_of(combine_->plan().rows, config.row_bytes())};
    const Rows capacity{static_cast<std::uint64_t>(config.capacity)};
    for (const Extent& quantised :
         {Extent{"the rows of the dispatch", x(), bytes_of(capacity, config.dispatched_row())},
          Extent{"their copies", expert_rows_.data(), expert_rows_.size()}}) {
        if (!check_apart(given, quantised).ok())
            return {Code::argument, fmt::format("moe: x is in the quantized rows of the dispatch; give rows of {}, as "
                                                "npushmemx_moe_dequantize makes them",
                                                name_of(config.input))};
    }
    return {};
}

Result<std::byte*> Layer::expert_rows() {
    const RankRows* rows = combine_->rank_rows();
    if (rows == nullptr) return x();
    const std::size_t row = combine_->config().dispatched_row().value();
    if (Status s = expert_rows_.reserve(Rows{rows->source.size()}, Bytes{row}); !s.ok())
        return s.within("the rows have arrived (npushmemx_moe_get_received), but not as *x");
    for (std::size_t i = 0; i < rows->source.size(); ++i) {
        std::memcpy(expert_rows_.data() + i * row, x() + static_cast<std::size_t>(rows->source[i]) * row, row);
    }
    return expert_rows_.data();
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
