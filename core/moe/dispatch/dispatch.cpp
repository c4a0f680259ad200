// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/symmetric_memory.hpp"

namespace npushmem::moe {
namespace {

constexpr auto canary_byte = std::byte{0xC5};

}  // namespace

DispatchLayout DispatchLayout::of(const CombineConfig& config, std::int32_t ranks) {
    const CombineConfig transport = config.transport(ranks);
    const ExpertRows rows = ExpertRows::of(transport);
    const auto local = static_cast<std::uint64_t>(ExpertPlacement(transport.experts, ranks).local_experts(0));
    const std::uint64_t capacity =
        rows.is_fixed() ? local * rows.next_fixed(0, ranks) : static_cast<std::uint64_t>(config.capacity);
    return {ranks,
            transport.experts,
            Rows{capacity},
            config.dispatched_row(),
            config.rows_per == RowsPer::rank ? config.top_k : 0,
            rows};
}

Dispatch::Dispatch(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                   PublishedFailures& failures, const DispatchLayout& layout, SymmetricBlock region,
                   PrivateRows quantized)
    : config_(config),
      transport_(config.transport(memory.n_pes())),
      memory_(memory),
      failures_(failures),
      placement_(transport_.experts, memory.n_pes()),
      layout_(layout),
      region_(std::move(region)),
      results_(layout_, placement_, transport_.slots()),
      quantize_(best_narrow(config.dispatch_type, config.input).quantize),
      quantized_(std::move(quantized)),
      launches_(memory, device, region_.data()) {
    for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank)
        if (rank != memory.my_pe()) others_.push_back(rank);
}

Result<PrivateRows> Dispatch::memory_for_quantized(const CombineConfig& config) {
    PrivateRows rows;
    if (!config.validate().ok() || config.capacity == 0 || !config.quantizes()) return rows;
    const Rows tokens{static_cast<std::uint64_t>(config.max_tokens)};
    if (Status s = rows.reserve(tokens, config.dispatched_row()); !s.ok()) return s;
    return rows;
}

Result<std::unique_ptr<Dispatch>> Dispatch::create(const CombineConfig& config, SymmetricMemory& memory,
                                                   npu::Device& device, PublishedFailures& failures,
                                                   PrivateRows quantized) {
    const DispatchLayout layout = DispatchLayout::of(config, memory.n_pes());
    auto taken = memory.allocate(layout.total());
    if (!taken.ok()) {
        return taken.status().within(
            fmt::format("moe: {} bytes for a dispatch of up to {} rows of {} bytes to one rank", layout.total().value(),
                        layout.capacity().value(), config.dispatched_row().value()));
    }
    std::fill_n(taken.value() + layout.canary().value(), DispatchLayout::line, canary_byte);
    SymmetricBlock region(memory, taken.value());
    std::unique_ptr<Dispatch> dispatch(
        new Dispatch(config, memory, device, failures, layout, std::move(region), std::move(quantized)));
    dispatch->clear_slots(0);
    dispatch->clear_slots(1);
    if (config.rows_per == RowsPer::rank)
        publish_mapped(layout, dispatch->region_.data(), dispatch->launches_.host_served());
    // All memory is zeroed before any record arrives.
    if (Status s = memory.barrier(); !s.ok()) return s;
    if (config.rows_per == RowsPer::choice) return dispatch;
    auto fan_out = RowFanOut::fetch(memory, layout, dispatch->region_.data());
    if (!fan_out.ok()) return fan_out.status();
    dispatch->fan_out_ = std::move(fan_out).value();
    return dispatch;
}

// Fixed slots hold a row of each token at each expert. A token can choose an expert more often.
Status Dispatch::check_routing(const RankRouting& own) {
    if (Status s = check_own_routing(config_, own, memory_.my_pe()); !s.ok()) return s;
    if (!layout_.expert_rows().is_fixed() || config_.rows_per == RowsPer::rank) return {};
    rows_to_expert_.assign(static_cast<std::size_t>(layout_.experts()), 0);
    for (const std::int32_t expert : own.experts) {
        if (expert < 0 || ++rows_to_expert_[static_cast<std::size_t>(expert)] <= config_.max_tokens) continue;
        return {Code::range,
                fmt::format("rank {}: more rows for expert {} than the {} fixed slots; choose an expert once "
                            "per token, or give a capacity",
                            memory_.my_pe(), expert, config_.max_tokens)};
    }
    return {};
}

Status Dispatch::check(const std::byte* in, std::size_t tokens) const {
    const Extent rows{"in", in, config_.given_row() * tokens};
    const Extent region{"the receive memory of this handle", region_.data(), layout_.total()};
    if (Status s = check_address(rows, config_.narrow_input ? ElementSize{sizeof(float)} : size_of(config_.input));
        !s.ok())
        return s;
    return check_apart(rows, region);
}

// With an audit, rows without a slot show.
void Dispatch::clear_slots(std::uint64_t epoch) {
    if (config_.audit) std::fill_n(slots(epoch), layout_.capacity().value(), no_slot);
}

// Prepares the rows to send and the plan of those to receive.
std::vector<std::uint8_t> Dispatch::prepare_rows(const RankRouting& own) {
    rows_ = {};
    rows_.plan = empty_plan(placement_, memory_.my_pe());
    if (config_.rows_per == RowsPer::choice) return {};
    rows_.own = route_to_ranks(own, config_.top_k, ExpertPlacement(config_.experts, memory_.n_pes()));
    const std::vector<std::uint32_t> slots = slots_by_rank(rows_.own, memory_.n_pes());
    row_choices_.clear();
    append_choices(row_choices_, slots, transport_.top_k, own, config_.top_k);
    return rows_through_relays(fan_out_, rows_.own, slots, transport_.top_k);
}

// The rows to send: those of `in`, or quantized ones, once for each token.
const std::byte* Dispatch::rows_to_send(const std::byte* in, std::size_t tokens) {
    if (quantized_.data() == nullptr || tokens == 0) return in;
    const NarrowLayout layout = config_.narrow();
    const std::size_t narrow = layout.row().value();
    for (std::size_t token = 0; token < tokens; ++token)
        quantize_(layout, in + token * config_.row_bytes().value(), quantized_.data() + token * narrow);
    return quantized_.data();
}

DispatchWork Dispatch::work_of(const std::byte* in) {
    DispatchWork work;
    work.in = in;
    work.accepts = own_status_.ok();
    work.top_k = transport_.top_k;
    work.placement = placement_;
    work.host_served = launches_.host_served();
    work.region = region_.data();
    work.layout = layout_;
    work.epoch = epoch_;
    work.route = config_.dispatch_route;
    work.timeout = config_.timeout;
    return work;
}

Status Dispatch::run(const std::byte* in, const RankRouting& own, const Status& local_status) {
    Status started = start(in, own, local_status);
    return started.ok() ? finish() : started;
}

Status Dispatch::start(const std::byte* in, const RankRouting& own, const Status& local_status) {
    if (!failures_.handle_status().ok()) return failures_.handle_status();
    ++epoch_;
    own_status_ = local_status.ok() ? check_routing(own) : local_status;
    if (own_status_.ok()) own_status_ = check(in, own.tokens(config_.top_k));
    results_.set_record(own_status_);
    const RankRouting accepted = own_status_.ok() ? own : RankRouting{};
    std::vector<std::uint8_t> through_relays = prepare_rows(accepted);
    const RankRouting sent = config_.rows_per == RowsPer::rank ? rows_.own.view() : accepted;
    DispatchWork work = work_of(rows_to_send(in, accepted.tokens(config_.top_k)));
    work.experts = sent.experts.data();
    work.choices = sent.experts.size();
    work.row_choices = config_.rows_per == RowsPer::rank ? row_choices_.data() : nullptr;
    results_.use_next(work, rows_.plan, std::move(through_relays));
    return launch(work);
}

Status Dispatch::start_cached(const std::byte* in, std::size_t tokens, DispatchKind kind, const RoutingId& routing,
                              std::span<const std::uint32_t> tags, const Status& local_status) {
    if (!failures_.handle_status().ok()) return failures_.handle_status();
    ++epoch_;
    own_status_ = local_status.ok() ? check(in, tokens) : local_status;
    results_.set_record(own_status_, kind, routing);
    DispatchWork work = work_of(rows_to_send(in, own_status_.ok() ? tokens : 0));
    work.cached = true;
    work.tags = tags.data();
    results_.use_current(work, rows_.plan);
    return launch(work);
}

Status Dispatch::launch(const DispatchWork& work) {
    // Runs before this rank's record allows other ranks to write there: with fixed slots, rows of the next call.
    clear_slots(epoch_ + layout_.buffers() - 1);
    work_ = work;
    if (Status s = launches_.start(work_); !s.ok()) return abort_call(s);
    return {};
}

Status Dispatch::finish() {
    if (Status s = launches_.finish(work_, results_); !s.ok()) return abort_call(s);
    if (!results_.accepted()) return results_.refusal(work_, memory_.my_pe(), own_status_);
    accepted_ = epoch_;
    if (!work_.cached) {
        results_.accept();
        adopt();
    }
    if (Status s = copy_from_relays(); !s.ok()) return abort_call(s);
    if (!config_.audit) return {};
    const Status audited = work_.cached ? check_canary() : audit();
    return audited.ok() ? audited : abort_call(audited);
}

void Dispatch::adopt() {
    CombinePlan& plan = rows_.plan;
    plan.rows = results_.rows_of(memory_.my_pe());
    plan.slots.assign(plan.rows.value(), no_slot);
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
            const Fragment f = plan.fragment(expert, rank);
            std::copy_n(slots(epoch_) + f.first.value(), f.count.value(), plan.slots.data() + f.first.value());
        }
    }
    const auto* choices = reinterpret_cast<const Choice*>(region_.data() + layout_.choices(epoch_).value());
    rows_.choices.assign(choices, choices + plan.rows.value() * layout_.choices_per_row());
}

std::uint32_t* Dispatch::slots(std::uint64_t epoch) const {
    return reinterpret_cast<std::uint32_t*>(region_.data() + layout_.slots(epoch).value());
}

// Checks that every row has arrived exactly once: each has a slot, slots ascend inside a fragment, and no byte behind
// the last row was written.
Status Dispatch::audit() const {
    if (Status s = check_order(rows_.plan); !s.ok()) return s.within(fmt::format("dispatch, call {}", epoch_));
    const std::span<const std::uint32_t> all(slots(epoch_), layout_.capacity().value());
    const auto arrived = all.size() - static_cast<std::uint64_t>(std::ranges::count(all, no_slot));
    const auto in_place =
        rows_.plan.slots.size() - static_cast<std::uint64_t>(std::ranges::count(rows_.plan.slots, no_slot));
    std::uint64_t counted = 0;
    for (std::int32_t expert = 0; expert < rows_.plan.local_experts; ++expert)
        counted += rows_.plan.rows_of_expert(expert).value();
    if (arrived != counted || in_place != counted) {
        return {
            Code::protocol,
            fmt::format("dispatch, call {}: {} rows have arrived, {} of them in their places, but the counts say {}",
                        epoch_, arrived, in_place, counted)};
    }
    return check_canary();
}

Status Dispatch::check_canary() const {
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

void Dispatch::signal_abort() { launches_.signal_abort(work_of(nullptr)); }

float* Dispatch::reply(std::size_t each) const {
    const Bytes place = each == 1 ? layout_.slots(epoch_) : layout_.choices(epoch_);
    return reinterpret_cast<float*>(region_.data() + place.value());
}

Status Dispatch::signal(std::span<const std::int32_t> ranks, Word word) {
    // Orders this rank's plain stores and loads before the signals.
    std::atomic_thread_fence(std::memory_order_release);
    for (const std::int32_t rank : ranks) memory_.signal(work_.word((layout_.*word)(memory_.my_pe())), epoch_, rank);
    return memory_.quiet();
}

Status Dispatch::await(std::span<const std::int32_t> ranks, Word word, const char* what) {
    if (ranks.empty()) return {};
    const auto is_missing = [&](std::int32_t rank) {
        // Acquire: pairs with the signal of the rank.
        return __atomic_load_n(work_.word((layout_.*word)(rank)), __ATOMIC_ACQUIRE) < epoch_;
    };
    const auto has_aborted = [&](std::int32_t rank) { return abort_received(work_.word(layout_.arrived(rank))); };
    auto next = ranks.begin();
    const Status waited = memory_.wait(
        [&] {
            while (next != ranks.end() && !is_missing(*next)) ++next;
            return next == ranks.end() || has_aborted(*next);
        },
        config_.timeout);
    if (!waited.ok())
        return waited.within(
            fmt::format("dispatch, call {}: rank {} waits for the {} rank {}", epoch_, memory_.my_pe(), what, *next));
    if (next == ranks.end() || !is_missing(*next)) return {};
    return {Code::aborted,
            fmt::format("dispatch, call {}: rank {} has aborted; its own error names the cause", epoch_, *next)};
}

Status Dispatch::signal_and_await(std::span<const std::int32_t> ranks, Word word, const char* what) {
    const Status signalled = signal(ranks, word);
    return signalled.ok() ? await(ranks, word, what) : signalled;
}

// The rows from other groups have arrived here. The peers learn that, and this rank copies the rows that they have got
// on its behalf.
Status Dispatch::copy_from_relays() {
    const std::vector<std::int32_t>& peers = fan_out_.peers();
    if (peers.empty()) return {};
    if (Status s = signal(peers, &DispatchLayout::relayed); !s.ok()) return s;
    if (work_.cached && results_.current().relayed.empty()) return {};
    if (Status s = await(peers, &DispatchLayout::relayed, "arrival of the rows of other hosts at"); !s.ok()) return s;
    if (!work_.cached) {
        auto found = find_relayed_rows(fan_out_, memory_, work_, rows_, config_);
        if (!found.ok()) return found.status();
        results_.set_relayed(std::move(found).value());
    }
    if (Status s = copy_relayed_rows(memory_, work_, results_.current().relayed); !s.ok()) return s;
    // The peers' slots have been read, which they clear for the next call.
    if (!config_.audit || work_.cached) return {};
    return signal_and_await(peers, &DispatchLayout::fetched, "end of");
}

Status Dispatch::fetch_all(std::vector<float>& replies, std::size_t each) {
    const RowPlaces& places = results_.current();
    replies.resize(places.begins.back() * each);
    for (std::int32_t expert = 0; expert < layout_.experts(); ++expert) {
        const auto at = static_cast<std::size_t>(expert);
        const std::uint64_t count = places.begins[at + 1] - places.begins[at];
        if (count == 0) continue;
        const auto* from = reinterpret_cast<const std::byte*>(reply(each) + places.starts[at] * each);
        Status fetched = memory_.fetch(replies.data() + places.begins[at] * each, from,
                                       bytes_of(Rows{count}, Bytes{each * sizeof(float)}), placement_.rank_of(expert));
        if (!fetched.ok()) return fetched;
    }
    return {};
}

Status Dispatch::fetch_replies(std::vector<float>& replies, std::size_t each) {
    Status status = signal_and_await(others_, &DispatchLayout::replied, "gradients of");
    if (status.ok()) status = fetch_all(replies, each);
    if (status.ok() && config_.audit) status = signal_and_await(others_, &DispatchLayout::fetched, "end of");
    return status.ok() ? status : abort_call(status);
}

Status Dispatch::reset() {
    if (Status s = memory_.barrier(); !s.ok()) return s;
    std::memset(region_.data(), 0, layout_.record(0, 0).value());
    epoch_ = accepted_ = 0;
    clear_slots(0);
    clear_slots(1);
    return memory_.barrier();
}

}  // namespace npushmem::moe
