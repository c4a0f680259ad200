// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/layer.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/moe/common/gradients.hpp"

namespace npushmem::moe {
namespace {

// Rows have 32-bit numbers, also in fixed slots, and with one row per rank those of the experts, with their gaps.
Status check_rows_of_plan(const CombineConfig& config, int ranks) {
    if (!config.validate().ok()) return {};
    constexpr std::uint64_t max_rows = std::numeric_limits<std::int32_t>::max();
    const std::uint64_t received = DispatchLayout::of(config, ranks).capacity().value();
    if (config.capacity == fixed_slots && config.rows_per == RowsPer::choice && received > max_rows) {
        return {Code::range,
                fmt::format("moe: fixed slots for {} tokens of {} ranks at {} experts are {} rows of a rank, "
                            "above {}; use fewer max_tokens or a capacity",
                            config.max_tokens, ranks, config.experts, received, max_rows)};
    }
    const auto local = static_cast<std::uint64_t>(ExpertPlacement(config.experts, ranks).local_experts(0));
    const std::uint64_t gaps = local * static_cast<std::uint64_t>(config.expert_alignment - 1);
    const std::uint64_t rows =
        config.rows_per == RowsPer::rank ? received * static_cast<std::uint64_t>(config.top_k) + gaps : gaps;
    if (rows <= max_rows) return {};
    return {Code::range,
            fmt::format("moe: the rows of {} experts, with an expert_alignment of {}, are up to {} at one rank, "
                        "above {}; use a lower expert_alignment, capacity or max_tokens",
                        local, config.expert_alignment, rows, max_rows)};
}

}  // namespace

Result<std::unique_ptr<Layer>> Layer::create(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                             const Status& local_status) {
    // Taken before the ranks agree, so that all learn of a failure.
    auto quantized = Dispatch::memory_for_quantized(config);
    Status own = local_status.ok() ? check_rows_of_plan(config, memory.n_pes()) : local_status;
    if (own.ok()) own = quantized.status();
    auto combine = Combine::create(config, memory, device, own);
    if (!combine.ok()) return combine.status();
    std::unique_ptr<Layer> layer(new Layer);
    layer->combine_ = std::move(combine).value();
    if (config.capacity == 0) return layer;
    auto dispatch = Dispatch::create(config, memory, device, layer->combine_->failures(), std::move(quantized).value());
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

Status Layer::check_dispatched() const {
    const RoutingId& current = combine_->routing_id();
    if (combine_->routing().is_set() && current == dispatched_) return {};
    return {Code::state,
            "moe: the routing of this handle is not that of a dispatch; call npushmemx_moe_dispatch, or "
            "npushmemx_moe_set_layout with a layout of one"};
}

Status Layer::start_cached_dispatch(const std::byte* in) {
    if (Status s = idle(); !s.ok()) return s;
    if (Status s = check_dispatched(); !s.ok()) return s;
    const std::size_t tokens = combine_->tokens().value();
    Status status = run_step(Call::dispatch, [&] {
        return dispatch_->start_cached(in, tokens, DispatchKind::cached, combine_->routing_id(), {}, {});
    });
    if (status.ok()) pending_call_ = Call::dispatch;
    return status;
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
    if (!status.ok() || dispatch_->is_cached()) return status;
    status = combine_->adopt(dispatch_->take_rows(), own_);
    if (status.ok()) dispatched_ = combine_->routing_id();
    return status;
}

Result<RoutedLayout> Layer::layout() {
    if (Status s = idle(); !s.ok()) return s;
    if (!combine_->routing().is_set()) return Status{Code::state, "moe: the handle has no routing"};
    const RoutingId& id = combine_->routing_id();
    if (places_of_ != id) {
        places_ = check_dispatched().ok() ? std::make_shared<RowPlaces>(dispatch_->places()) : nullptr;
        places_of_ = id;
    }
    return RoutedLayout{combine_->routing().rows(), places_, id, combine_->config()};
}

// The rows of the layout must have the same places here, and room.
Status Layer::check_layout(const RoutedLayout& layout) const {
    const CombineConfig& here = combine_->config();
    const CombineConfig& there = layout.config;
    const auto differ = [](const char* field, std::int64_t value, std::int64_t own) {
        return Status{Code::argument,
                      fmt::format("moe: the layout is from a handle with {} {}, this one has {}", field, value, own)};
    };
    if (there.experts != here.experts) return differ("experts", there.experts, here.experts);
    if (there.top_k != here.top_k) return differ("top_k", there.top_k, here.top_k);
    if (there.rows_per != here.rows_per)
        return differ("rows", static_cast<std::int64_t>(there.rows_per), static_cast<std::int64_t>(here.rows_per));
    if (there.expert_alignment != here.expert_alignment)
        return differ("expert_alignment", there.expert_alignment, here.expert_alignment);
    const auto tokens = static_cast<std::int64_t>(layout.rows->tokens.value());
    if (tokens > here.max_tokens)
        return {Code::range, fmt::format("moe: the layout has {} tokens, above the max_tokens {} of this handle",
                                         tokens, here.max_tokens)};
    // A dispatch makes this order; tables of a caller may have another one.
    if (layout.places == nullptr && here.streams() && here.rows_per == RowsPer::choice) {
        if (Status s = check_order(layout.rows->plan); !s.ok()) return s;
    }
    if (layout.places == nullptr || dispatch_ == nullptr) return {};
    const bool fixed = here.capacity == fixed_slots;
    if (fixed != (there.capacity == fixed_slots) || (fixed && there.max_tokens != here.max_tokens)) {
        return {Code::argument,
                "moe: the layout is from a handle with other slots; both need fixed slots for as many "
                "max_tokens, or neither"};
    }
    const std::uint64_t capacity = DispatchLayout::of(here, combine_->ranks()).capacity().value();
    for (const std::uint64_t rows : layout.places->totals) {
        if (rows > capacity)
            return {Code::range,
                    fmt::format("moe: a rank receives {} rows by the layout, above the capacity {} of this handle",
                                rows, capacity)};
    }
    return {};
}

Status Layer::set_layout(const RoutedLayout& layout, const Status& local_status) {
    if (Status s = idle(); !s.ok()) return s;
    const Status own = local_status.ok() ? check_layout(layout) : local_status;
    if (Status s = combine_->restore(layout.rows, layout.id, layout.places != nullptr, own); !s.ok()) return s;
    places_ = layout.places;
    places_of_ = layout.id;
    dispatched_ = {};
    if (layout.places == nullptr || dispatch_ == nullptr) return {};
    dispatch_->set_places(*layout.places);
    dispatched_ = layout.id;
    return {};
}

// A combine would read quantized rows as rows of the input type, which are longer.
Status Layer::check_rows(const std::byte* x_of_caller) const {
    const CombineConfig& config = combine_->config();
    if (dispatch_ == nullptr || config.dispatch_type == NarrowType::none) return {};
    const Extent given{"x", x_of_caller, bytes_of(combine_->plan().rows, config.row_bytes())};
    for (const Extent& quantized :
         {dispatch_->received_rows(), Extent{"their copies", expert_rows_.data(), expert_rows_.size()}}) {
        if (!check_apart(given, quantized).ok())
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
        if (rows->source[i] < 0) continue;  // a gap before an aligned expert
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

Status Layer::check_gradients(const std::byte* grad_out, const std::byte* x, std::byte* grad_x,
                              float* grad_weights) const {
    const CombineConfig& config = combine_->config();
    const Tokens tokens = combine_->tokens();
    const Bytes rows = bytes_of(combine_->plan().rows, config.row_bytes());
    const auto* of_weights = reinterpret_cast<const std::byte*>(grad_weights);
    const Bytes weights = bytes_of(rows_of(tokens, static_cast<std::uint32_t>(config.top_k)), Bytes{sizeof(float)});
    if (config.dispatch_type != NarrowType::none) {
        return {Code::unsupported,
                "moe: the rows of this handle's dispatch are quantized; set the layout in a handle with "
                "dispatch_type 0 for the gradients"};
    }
    const Extent in{"grad_out", grad_out, config.row_bytes() * tokens.value()};
    const Extent values{"x", x, rows};
    const Extent of_rows{"grad_x", grad_x, rows};
    const Extent of_choices{"grad_weights", of_weights, weights};
    if (Status s = check_address(of_rows, size_of(config.input)); !s.ok()) return s;
    if (Status s = check_address(values, size_of(config.input)); !s.ok()) return s;
    if (Status s = check_address(of_choices, ElementSize{sizeof(float)}); !s.ok()) return s;
    for (const Extent& written : {of_rows, of_choices}) {
        for (const Extent& read : {dispatch_->received_rows(), in, values}) {
            if (Status s = check_apart(written, read); !s.ok()) return s;
        }
    }
    if (Status s = check_apart(of_rows, of_choices); !s.ok()) return s;
    return check_apart(values, dispatch_->received_rows());
}

Status Layer::combine_backward(const std::byte* grad_out, const std::byte* x, std::byte* grad_x, float* grad_weights) {
    if (Status s = idle(); !s.ok()) return s;
    if (Status s = check_dispatched(); !s.ok()) return s;
    row_weights_.clear();
    if (combine_->rank_rows() == nullptr) {
        const RowPlaces& places = dispatch_->current_places();
        const std::vector<float>& weights = combine_->routing().weights();
        for (std::uint64_t i = 0; i < places.begins.back(); ++i)
            row_weights_.push_back(std::bit_cast<std::uint32_t>(weights[places.order[i]]));
    }
    return run_step(Call::dispatch, [&] {
        Status status = dispatch_->start_cached(grad_out, combine_->tokens().value(), DispatchKind::gradients,
                                                combine_->routing_id(), row_weights_,
                                                check_gradients(grad_out, x, grad_x, grad_weights));
        if (status.ok()) status = dispatch_->finish();
        if (!status.ok()) return status;
        compute_gradients(x, grad_x);
        return collect_gradients(grad_weights);
    });
}

// Of the rows of this rank's experts. The weights' gradients become replies.
void Layer::compute_gradients(const std::byte* x, std::byte* grad_x) {
    const CombineConfig& config = combine_->config();
    const RankRows* received = combine_->rank_rows();
    const CombinePlan& plan = combine_->plan();
    RowGradients gradients(config.input, static_cast<std::size_t>(config.hidden));
    const std::size_t row = config.row_bytes().value();
    const auto top_k = static_cast<std::size_t>(config.top_k);
    float* const reply = dispatch_->reply(received == nullptr ? 1 : top_k);
    for (std::size_t at = 0; at < plan.rows.value(); ++at) {
        if (plan.slots[at] == no_slot) continue;
        const std::size_t from = received == nullptr ? at : static_cast<std::size_t>(received->source[at]);
        const float weight = received == nullptr ? std::bit_cast<float>(dispatch_->tags()[at]) : received->weights[at];
        const std::byte* const gradient = dispatch_->x() + from * row;
        gradients.scale(grad_x + at * row, gradient, weight);
        const std::size_t place = received == nullptr ? at : from * top_k + plan.slots[at] % top_k;
        reply[place] = gradients.product(x + at * row, gradient);
    }
}

// Of this rank's tokens, from the ranks of their experts.
Status Layer::collect_gradients(float* grad_weights) {
    const auto top_k = static_cast<std::size_t>(combine_->config().top_k);
    const RoutedRows& rows = *combine_->routing().rows();
    const bool per_rank = combine_->rank_rows() != nullptr;
    if (Status s = dispatch_->fetch_replies(replies_, per_rank ? top_k : 1); !s.ok()) return s;
    std::fill_n(grad_weights, rows.tokens.value() * top_k, 0.0F);
    const RowPlaces& places = dispatch_->current_places();
    if (!per_rank) {
        for (std::size_t i = 0; i < places.begins.back(); ++i) grad_weights[places.order[i]] = replies_[i];
        return {};
    }
    const ExpertPlacement placement(combine_->config().experts, combine_->ranks());
    const auto width = static_cast<std::uint32_t>(std::min(combine_->config().top_k, placement.ranks()));
    for (std::int32_t rank = 0; rank < placement.ranks(); ++rank) {
        for (std::size_t i = places.begins[static_cast<std::size_t>(rank)];
             i < places.begins[static_cast<std::size_t>(rank) + 1]; ++i) {
            const std::size_t first = places.order[i] / width * top_k;
            for (std::size_t k = 0; k < top_k; ++k) {
                const std::int32_t expert = rows.choices[first + k];
                if (expert >= 0 && placement.rank_of(expert) == rank) grad_weights[first + k] = replies_[i * top_k + k];
            }
        }
    }
    return {};
}

Status Layer::dispatch_backward(const std::byte* grad_x, std::byte* grad_in) {
    if (Status s = idle(); !s.ok()) return s;
    if (Status s = check_dispatched(); !s.ok()) return s;
    return run_step(Call::combine, [&] {
        Status status = combine_->start(grad_x, grad_in, check_rows(grad_x), false);
        return status.ok() ? combine_->finish() : status;
    });
}

Status Layer::reset() {
    static_cast<void>(wait());
    dispatched_ = places_of_ = {};
    if (Status s = combine_->reset(); !s.ok()) return s;
    return dispatch_ != nullptr ? dispatch_->reset() : Status{};
}

}  // namespace npushmem::moe
