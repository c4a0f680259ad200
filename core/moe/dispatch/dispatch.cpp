// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/symmetric_memory.hpp"

namespace npushmem::moe {
namespace {

constexpr auto canary_byte = std::byte{0xC5};

}  // namespace

Dispatch::Dispatch(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                   PublishedFailures& failures, const DispatchLayout& layout, SymmetricBlock region,
                   PrivateRows quantised)
    : config_(config),
      transport_(config.transport(memory.n_pes())),
      memory_(memory),
      failures_(failures),
      placement_(transport_.experts, memory.n_pes()),
      layout_(layout),
      region_(std::move(region)),
      results_(layout_, placement_, transport_.slots()),
      quantize_(best_narrow(config.dispatch_type, config.input).quantize),
      quantised_(std::move(quantised)),
      launches_(memory, device, region_.data()) {}

Result<PrivateRows> Dispatch::memory_for_quantised(const CombineConfig& config) {
    PrivateRows rows;
    if (!config.validate().ok() || config.capacity == 0 || !config.quantises()) return rows;
    const Rows tokens{static_cast<std::uint64_t>(config.max_tokens)};
    if (Status s = rows.reserve(tokens, config.dispatched_row()); !s.ok()) return s;
    return rows;
}

Result<std::unique_ptr<Dispatch>> Dispatch::create(const CombineConfig& config, SymmetricMemory& memory,
                                                   npu::Device& device, PublishedFailures& failures,
                                                   PrivateRows quantised) {
    const DispatchLayout layout(memory.n_pes(), config.transport(memory.n_pes()).experts,
                                Rows{static_cast<std::uint64_t>(config.capacity)}, config.dispatched_row(),
                                config.rows_per == RowsPer::rank ? config.top_k : 0);
    auto taken = memory.allocate(layout.total());
    if (!taken.ok()) {
        return taken.status().within(
            fmt::format("moe: {} bytes for a dispatch of up to {} rows of {} bytes to one rank", layout.total().value(),
                        config.capacity, config.dispatched_row().value()));
    }
    std::fill_n(taken.value() + layout.canary().value(), DispatchLayout::line, canary_byte);
    SymmetricBlock region(memory, taken.value());
    std::unique_ptr<Dispatch> dispatch(
        new Dispatch(config, memory, device, failures, layout, std::move(region), std::move(quantised)));
    // All memory is zeroed before any record arrives.
    if (Status s = memory.barrier(); !s.ok()) return s;
    return dispatch;
}

Status Dispatch::check(const std::byte* in, const RankRouting& own) const {
    if (Status s = check_own_routing(config_, own, memory_.my_pe()); !s.ok()) return s;
    const Extent tokens{"in", in, config_.given_row() * own.tokens(config_.top_k)};
    const Extent region{"the receive memory of this handle", region_.data(), layout_.total()};
    if (Status s = check_address(tokens, config_.narrow_input ? ElementSize{sizeof(float)} : size_of(config_.input));
        !s.ok())
        return s;
    return check_apart(tokens, region);
}

// Prepares the rows to send and the plan of those to receive.
void Dispatch::prepare_rows(const RankRouting& own) {
    rows_ = {};
    rows_.plan = empty_plan(placement_, memory_.my_pe());
    if (config_.rows_per == RowsPer::choice) return;
    rows_.own = route_to_ranks(own, config_.top_k, ExpertPlacement(config_.experts, memory_.n_pes()));
    row_choices_.clear();
    append_choices(row_choices_, slots_by_rank(rows_.own, memory_.n_pes()), transport_.top_k, own, config_.top_k);
}

// The rows to send: those of `in`, or quantised ones, once for each token.
const std::byte* Dispatch::rows_to_send(const std::byte* in, std::size_t tokens) {
    if (quantised_.data() == nullptr || tokens == 0) return in;
    const NarrowLayout layout = config_.narrow();
    const std::size_t narrow = layout.row().value();
    for (std::size_t token = 0; token < tokens; ++token)
        quantize_(layout, in + token * config_.row_bytes().value(), quantised_.data() + token * narrow);
    return quantised_.data();
}

DispatchWork Dispatch::work_of(const std::byte* in, const RankRouting& own) {
    DispatchWork work;
    work.in = in;
    work.experts = own.experts.data();
    work.choices = own.experts.size();
    work.row_choices = config_.rows_per == RowsPer::rank ? row_choices_.data() : nullptr;
    work.top_k = transport_.top_k;
    work.placement = placement_;
    work.host_served = launches_.host_served();
    work.region = region_.data();
    work.layout = layout_;
    work.epoch = epoch_;
    work.route = config_.route;
    work.timeout = config_.timeout;
    work.tables = results_.tables(rows_.plan);
    return work;
}

Status Dispatch::run(const std::byte* in, const RankRouting& own, const Status& local_status) {
    Status started = start(in, own, local_status);
    return started.ok() ? finish() : started;
}

Status Dispatch::start(const std::byte* in, const RankRouting& own, const Status& local_status) {
    if (!failures_.handle_status().ok()) return failures_.handle_status();
    ++epoch_;
    own_status_ = local_status.ok() ? check(in, own) : local_status;
    results_.set_record(own_status_);
    const RankRouting accepted = own_status_.ok() ? own : RankRouting{};
    prepare_rows(accepted);
    // Runs before this rank's record allows other ranks to write there.
    if (config_.audit) std::fill_n(slots(), layout_.capacity().value(), no_slot);
    const std::byte* const rows = rows_to_send(in, accepted.tokens(config_.top_k));
    work_ = work_of(rows, config_.rows_per == RowsPer::rank ? rows_.own.view() : accepted);
    if (Status s = launches_.start(work_); !s.ok()) return abort_call(s);
    return {};
}

Status Dispatch::finish() {
    if (Status s = launches_.finish(work_, results_); !s.ok()) return abort_call(s);
    if (!results_.accepted()) return results_.refusal(work_, memory_.my_pe(), own_status_);
    adopt();
    return config_.audit ? audit() : Status{};
}

void Dispatch::adopt() {
    rows_.plan.rows = results_.rows_of(memory_.my_pe());
    rows_.plan.slots.assign(slots(), slots() + rows_.plan.rows.value());
    const auto* choices = reinterpret_cast<const Choice*>(region_.data() + layout_.choices().value());
    rows_.choices.assign(choices, choices + rows_.plan.rows.value() * layout_.choices_per_row());
}

std::uint32_t* Dispatch::slots() const {
    return reinterpret_cast<std::uint32_t*>(region_.data() + layout_.slots().value());
}

// Checks that every row has arrived exactly once: each has a slot, slots ascend inside a fragment, and no byte behind
// the last row was written.
Status Dispatch::audit() const {
    if (Status s = check_order(rows_.plan); !s.ok()) return s.within(fmt::format("dispatch, call {}", epoch_));
    const std::span<const std::uint32_t> all(slots(), layout_.capacity().value());
    const auto contiguous = static_cast<std::uint64_t>(std::ranges::find(all, no_slot) - all.begin());
    const auto arrived = all.size() - static_cast<std::uint64_t>(std::ranges::count(all, no_slot));
    if (contiguous != rows_.plan.rows.value() || arrived != contiguous) {
        return {Code::protocol,
                fmt::format("dispatch, call {}: {} rows have arrived, {} of them without a gap, but the counts say {}",
                            epoch_, arrived, contiguous, rows_.plan.rows.value())};
    }
    const std::byte* canary = region_.data() + layout_.canary().value();
    const std::byte* end = canary + DispatchLayout::line;
    const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != canary_byte; });
    if (wrong == end) return {};
    return {Code::protocol,
            fmt::format("dispatch, call {}: byte {} after the last row of x was overwritten", epoch_, wrong - canary)};
}

Status Dispatch::abort_call(const Status& cause) {
    launches_.drain();
    Status result = failures_.write(cause, aborted_peer());
    signal_abort();
    return result;
}

std::optional<int> Dispatch::aborted_peer() const {
    const auto word = [&](Bytes offset) { return reinterpret_cast<std::uint64_t*>(region_.data() + offset.value()); };
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
        if (rank == memory_.my_pe()) continue;
        if (abort_received(word(layout_.counts(rank))) || abort_received(word(layout_.arrived(rank)))) return rank;
    }
    return std::nullopt;
}

void Dispatch::signal_abort() { launches_.signal_abort(work_of(nullptr, {})); }

Status Dispatch::reset() {
    if (Status s = memory_.barrier(); !s.ok()) return s;
    std::memset(region_.data(), 0, layout_.record(0, 0).value());
    epoch_ = 0;
    return memory_.barrier();
}

}  // namespace npushmem::moe
