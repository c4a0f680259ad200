#include "core/moe/dispatch/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/dispatch/dispatch_kernel.hpp"
#include "core/moe/dispatch/remote_dispatch.hpp"

namespace npushmem::moe {
namespace {

constexpr auto canary_byte = std::byte{0xC5};

}  // namespace

Dispatch::Dispatch(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                   PublishedFailures& failures)
    : config_(config),
      memory_(memory),
      device_(device),
      failures_(failures),
      placement_(config.experts, memory.n_pes()),
      layout_(memory.n_pes(), config.experts, Rows{static_cast<std::uint64_t>(config.capacity)}, config.row_bytes()),
      stream_(device),
      record_(layout_.record_bytes().value()),
      order_(config.slots().value()),
      begins_(static_cast<std::size_t>(config.experts) + 1),
      starts_(static_cast<std::size_t>(config.experts)),
      totals_(static_cast<std::size_t>(memory.n_pes())) {}

Result<std::unique_ptr<Dispatch>> Dispatch::create(const CombineConfig& config, SymmetricMemory& memory,
                                                   npu::Device& device, PublishedFailures& failures) {
    std::unique_ptr<Dispatch> dispatch(new Dispatch(config, memory, device, failures));
    if (Status s = dispatch->allocate(); !s.ok()) return s;
    // All memory is zeroed before any record arrives.
    if (Status s = memory.barrier(); !s.ok()) return s;
    return dispatch;
}

Status Dispatch::allocate() {
    auto taken = memory_.allocate(layout_.total());
    if (!taken.ok()) {
        return taken.status().within(
            fmt::format("moe: {} bytes for a dispatch of up to {} rows of {} bytes to one rank",
                        layout_.total().value(), config_.capacity, config_.row_bytes().value()));
    }
    region_ = SymmetricBlock(memory_, taken.value());
    host_served_ = unmapped_ranks(device_.fabric(), memory_, region_.data());
    std::fill_n(region_.data() + layout_.canary().value(), DispatchLayout::line, canary_byte);
    return {};
}

Status Dispatch::check(const std::byte* in, const RankRouting& own) const {
    if (Status s = check_own_routing(config_, own, memory_.my_pe()); !s.ok()) return s;
    const Extent tokens{"in", in, config_.row_bytes() * own.tokens(config_.top_k)};
    const Extent region{"the receive memory of this handle", region_.data(), layout_.total()};
    if (Status s = check_address(tokens, size_of(config_.input)); !s.ok()) return s;
    return check_apart(tokens, region);
}

void Dispatch::fill_record(const Status& own_status) {
    DispatchRecord record;
    record.refused = static_cast<std::int32_t>(own_status.code());
    own_status.message().copy(record.reason.data(), record.reason.size() - 1);
    std::memcpy(record_.data(), &record, sizeof record);
}

void Dispatch::clear_plan() {
    plan_ = {};
    plan_.local_experts = placement_.local_experts(memory_.my_pe());
    plan_.ranks = placement_.ranks();
    plan_.first_expert = placement_.first_expert(memory_.my_pe());
    plan_.offset_table.assign(plan_.entry(plan_.local_experts, 0), 0);
    plan_.length_table.assign(plan_.entry(plan_.local_experts, 0), 0);
}

DispatchWork Dispatch::work_of(const std::byte* in, const RankRouting& own) {
    DispatchWork work;
    work.in = in;
    work.experts = own.experts.data();
    work.choices = own.experts.size();
    work.top_k = config_.top_k;
    work.placement = placement_;
    work.host_served = host_served_.empty() ? nullptr : host_served_.data();
    work.region = region_.data();
    work.layout = layout_;
    work.epoch = epoch_;
    work.route = config_.route;
    work.timeout = config_.timeout;
    work.tables = {record_.data(),
                   order_.data(),
                   begins_.data(),
                   starts_.data(),
                   totals_.data(),
                   &accepted_,
                   plan_.offset_table.data(),
                   plan_.length_table.data()};
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
    fill_record(own_status_);
    clear_plan();
    // Runs before this rank's record allows other ranks to write there.
    if (config_.audit) std::fill_n(slots(), layout_.capacity().value(), no_slot);
    work_ = work_of(in, own_status_.ok() ? own : RankRouting{});
    if (Status s = begin_launches(); !s.ok()) return abort_call(s);
    return {};
}

Status Dispatch::finish() {
    if (Status s = end_launches(); !s.ok()) return abort_call(s);
    if (accepted_ == 0) return refusal(own_status_);
    adopt();
    return config_.audit ? audit() : Status{};
}

Status Dispatch::launch(const char* name, void (*kernel)(npu::Core&, const DispatchWork&), const DispatchWork& work) {
    npu::LaunchConfig config(std::clamp(memory_.n_pes(), 1, device_.config().blocks), std::source_location{});
    config.name = name;
    return npu::launch(stream_, config, kernel, work);
}

// Launches all steps that wait for no other rank. Between the steps the host serves the ranks whose memory is not
// mapped.
Status Dispatch::begin_launches() {
    if (host_served_.empty()) return launch("moe_dispatch", moe_dispatch, work_);
    if (Status s = launch("moe_dispatch_publish_counts", moe_dispatch_publish_counts, work_); !s.ok()) return s;
    if (Status s = stream_.synchronize(); !s.ok()) return s;
    publish_counts_remotely(memory_, work_);
    if (Status s = memory_.quiet(); !s.ok()) return s;
    return launch("moe_dispatch_tables", moe_dispatch_tables, work_);
}

Status Dispatch::end_launches() {
    if (Status s = stream_.synchronize(); !s.ok() || host_served_.empty() || accepted_ == 0) return s;
    put_rows_remotely(memory_, work_);
    if (Status s = launch("moe_dispatch_rows", moe_dispatch_rows, work_); !s.ok()) return s;
    if (Status s = memory_.quiet(); !s.ok()) return s;
    if (Status s = launch("moe_dispatch_await", moe_dispatch_await, work_); !s.ok()) return s;
    return stream_.synchronize();
}

Status Dispatch::refusal(const Status& own) const {
    for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank) {
        DispatchRecord record;
        std::memcpy(&record, region_.data() + layout_.record(epoch_, rank).value(), sizeof record);
        if (record.refused == 0) continue;
        if (rank == memory_.my_pe()) return own;
        return {static_cast<Code>(record.refused), fmt::format("rank {} refused: {}", rank, record.reason.data())};
    }
    const auto above = std::ranges::find_if(totals_, [&](std::uint64_t n) { return n > layout_.capacity().value(); });
    return capacity_error(static_cast<std::int32_t>(above - totals_.begin()));
}

// Returns an error that names the first fragment that exceeds the capacity.
Status Dispatch::capacity_error(std::int32_t holder) const {
    std::uint64_t rows = 0;
    for (std::int32_t expert = placement_.first_expert(holder); expert < placement_.first_expert(holder + 1);
         ++expert) {
        for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank) {
            std::byte* record = region_.data() + layout_.record(epoch_, rank).value();
            const auto count = static_cast<std::uint64_t>(DispatchWork::counts_of(record)[expert]);
            rows += count;
            if (rows <= layout_.capacity().value()) continue;
            return {Code::range,
                    fmt::format("dispatch, call {}: expert {}, rank {}: with these {} rows, rank {} would hold {} "
                                "({} in all), above its capacity of {}; raise the capacity or send fewer tokens",
                                epoch_, expert, rank, count, holder, rows, totals_[static_cast<std::size_t>(holder)],
                                config_.capacity)};
        }
    }
    return {Code::protocol, fmt::format("dispatch, call {}: rejected, but no rank gives a reason", epoch_)};
}

void Dispatch::adopt() {
    plan_.rows = Rows{totals_[static_cast<std::size_t>(memory_.my_pe())]};
    plan_.slots.assign(slots(), slots() + plan_.rows.value());
}

std::uint32_t* Dispatch::slots() const {
    return reinterpret_cast<std::uint32_t*>(region_.data() + layout_.slots().value());
}

// Checks that every row has arrived exactly once: each has a slot, slots ascend inside a fragment, and no byte behind
// the last row was written.
Status Dispatch::audit() const {
    if (Status s = check_order(plan_); !s.ok()) return s.within(fmt::format("dispatch, call {}", epoch_));
    const std::span<const std::uint32_t> all(slots(), layout_.capacity().value());
    const auto contiguous = static_cast<std::uint64_t>(std::ranges::find(all, no_slot) - all.begin());
    const auto arrived = all.size() - static_cast<std::uint64_t>(std::ranges::count(all, no_slot));
    if (contiguous != plan_.rows.value() || arrived != contiguous) {
        return {Code::protocol,
                fmt::format("dispatch, call {}: {} rows have arrived, {} of them without a gap, but the counts say {}",
                            epoch_, arrived, contiguous, plan_.rows.value())};
    }
    const std::byte* canary = region_.data() + layout_.canary().value();
    const std::byte* end = canary + DispatchLayout::line;
    const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != canary_byte; });
    if (wrong == end) return {};
    return {Code::protocol,
            fmt::format("dispatch, call {}: byte {} behind the last row of x was overwritten", epoch_, wrong - canary)};
}

Status Dispatch::abort_call(const Status& cause) {
    // The stream does not run the launches behind a failed one.
    (void)stream_.synchronize();
    const Status result = failures_.write(cause, aborted_peer());
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

void Dispatch::signal_abort() {
    const DispatchWork work = work_of(nullptr, {});
    (void)launch("moe_dispatch_signal_abort", moe_dispatch_signal_abort, work);
    (void)stream_.synchronize();
    if (!host_served_.empty()) {
        signal_dispatch_abort_remotely(memory_, work);
        (void)memory_.quiet();
    }
}

Status Dispatch::reset() {
    if (Status s = memory_.barrier(); !s.ok()) return s;
    std::memset(region_.data(), 0, layout_.record(0, 0).value());
    epoch_ = 0;
    return memory_.barrier();
}

}  // namespace npushmem::moe
