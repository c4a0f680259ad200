// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/combine_launches.hpp"

#include <algorithm>
#include <utility>

#include "core/moe/stream/remote_stream.hpp"

namespace npushmem::moe {

RoutedPlan::RoutedPlan(const CombineConfig& config, SymmetricMemory& memory, std::byte* exchange)
    : config_(config),
      my_pe_(memory.my_pe()),
      placement_(config.experts, memory.n_pes()),
      exchange_(memory, exchange) {}

Status RoutedPlan::collect(const RankRouting& own) {
    routed_ = collected_ = false;
    if (Status s = exchange_.collect(); !s.ok()) return s;
    auto plan = build_combine_plan(exchange_.all(), placement_, my_pe_);
    if (!plan.ok()) return plan.status();
    adopt(std::move(plan).value(), own);
    collected_ = true;
    return {};
}

void RoutedPlan::adopt(CombinePlan plan, const RankRouting& own) {
    plan_ = std::move(plan);
    if (config_.streams()) order_ = row_order(own.experts, placement_, config_.chunk_slots(), config_.chunks());
    tokens_ = Tokens{own.tokens(config_.top_k)};
    experts_.assign(own.experts.begin(), own.experts.end());
    weights_.assign(own.weights.begin(), own.weights.end());
    routed_ = true;
    collected_ = false;
}

Status RoutedPlan::check(const CombinePlan& plan) const {
    if (!collected_) return {Code::state, "set the routing before a plan"};
    if (Status s = check_tables(plan, config_.slots()); !s.ok()) return s;
    if (Status s = check_slots(plan, exchange_.all()); !s.ok() || !config_.streams()) return s;
    return check_order(plan);
}

void RoutedPlan::clear() {
    routed_ = collected_ = false;
    plan_ = {};
    tokens_ = {};
    order_ = {};
}

namespace {

Bytes output_row_bytes(const CombineConfig& config) {
    return bytes_of(Elements{static_cast<std::uint64_t>(config.hidden)}, size_of(config.output));
}

}  // namespace

CombineLaunches::CombineLaunches(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                 const CombineMemory& blocks, const RoutedPlan& routing)
    : config_(config),
      memory_(memory),
      device_(device),
      blocks_(blocks),
      routing_(routing),
      reduce_(best_reduce(config.input, config.output)),
      host_served_(unmapped_ranks(device.fabric(), memory, blocks.region())),
      stream_(device) {}

Status CombineLaunches::check_buffers(const CombineCall& call) const {
    if (!routing_.is_set()) return {Code::state, "combine before any routing was set"};
    const Extent in{"x", call.x, bytes_of(routing_.plan().rows, config_.row_bytes())};
    const Extent target{"out", call.out, bytes_of(Rows{routing_.tokens().value()}, output_row_bytes(config_))};
    const Extent slots{"the receive memory of this handle", blocks_.region(), blocks_.layout().total()};
    if (Status s = check_address(in, size_of(config_.input)); !s.ok()) return s;
    if (Status s = check_address(target, size_of(config_.output)); !s.ok()) return s;
    if (Status s = check_apart(in, target); !s.ok()) return s;
    if (Status s = check_apart(in, slots); !s.ok()) return s;
    return check_apart(target, slots);
}

Status CombineLaunches::finish() {
    const bool with_host = config_.streams() && !host_served_.empty();
    return with_host ? stream_with_host() : stream_.synchronize();
}

std::optional<int> CombineLaunches::aborted_peer() const {
    const CombineSend send = send_arguments({});
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        if (rank == memory_.my_pe()) continue;
        if (config_.streams() && (abort_received(blocks_.rings().word(blocks_.rings().layout.head(rank))) ||
                                  abort_received(blocks_.rings().word(blocks_.rings().layout.tail(rank))))) {
            return rank;
        }
        if (abort_received(own_signal(send, rank))) return rank;
    }
    return std::nullopt;
}

void CombineLaunches::signal_abort(std::uint64_t epoch) {
    const CombineCall call{nullptr, nullptr, epoch};
    if (config_.streams()) {
        const StreamCombine work = stream_arguments(call);
        (void)npu::launch(stream_, launch_as("moe_stream_signal_abort"), moe_stream_signal_abort, work);
        (void)stream_.synchronize();
        if (host_served_.empty()) return;
        signal_stream_abort_remotely(memory_, work);
        (void)memory_.quiet();
        return;
    }
    const CombineSend send = send_arguments(call);
    (void)npu::launch(stream_, launch_as("moe_combine_signal_abort"), moe_combine_signal_abort, send);
    (void)stream_.synchronize();
    if (!host_served_.empty()) {
        signal_abort_remotely(memory_, send);
        (void)memory_.quiet();
    }
}

npu::LaunchConfig CombineLaunches::launch_as(const char* name) const {
    // In mode stream a core serves one end of a ring, and every rank has two ends here.
    const int sub_cores = device_.config().vector_cores;
    const int of_device = config_.route == CopyRoute::staged ? device_.config().blocks : memory_.n_pes();
    const int wanted = config_.streams() ? (2 * memory_.n_pes() + sub_cores - 1) / sub_cores : of_device;
    npu::LaunchConfig config(std::clamp(wanted, 1, device_.config().blocks), npu::SourceLocation{});
    config.name = name;
    return config;
}

CombineSend CombineLaunches::send_arguments(const CombineCall& call) const {
    CombineSend send = send_from(routing_.plan(), blocks_.layout());
    send.x = call.x;
    send.num_ranks = memory_.n_pes();  // also without a plan
    send.host_served = host_served_.empty() ? nullptr : host_served_.data();
    send.region = blocks_.region();
    send.arrivals = blocks_.arrivals();
    send.epoch = call.epoch;
    send.route = config_.route;
    return send;
}

CombineReceive CombineLaunches::receive_arguments(const CombineCall& call) const {
    CombineReceive receive;
    receive.region = blocks_.region();
    receive.layout = blocks_.layout();
    receive.epoch = call.epoch;
    receive.num_ranks = memory_.n_pes();
    receive.experts = routing_.experts().data();
    receive.weights = routing_.weights().data();
    receive.tokens = routing_.tokens();
    receive.top_k = config_.top_k;
    receive.out = call.out;
    receive.columns = Elements{static_cast<std::uint64_t>(config_.hidden)};
    receive.out_row = output_row_bytes(config_);
    receive.reduce = reduce_;
    receive.timeout = config_.timeout;
    return receive;
}

StreamCombine CombineLaunches::stream_arguments(const CombineCall& call) const {
    const RowOrder& order = routing_.order();
    return {send_arguments(call), receive_arguments(call), blocks_.rings(), order.slots.data(),
            order.first.data(),   config_.chunk(),         config_.chunks()};
}

// All rows of a chunk must arrive before the chunk is added up, and the chunk must be added up before rows of the next
// one arrive.
Status CombineLaunches::stream_with_host() {
    for (std::uint64_t chunk = 0; chunk < host_work_.chunks; ++chunk) {
        const npu::LaunchConfig exchange = launch_as("moe_combine_exchange");
        if (Status s = npu::launch(stream_, exchange, moe_combine_exchange, host_work_, chunk); !s.ok()) return s;
        const Status remote = exchange_remotely(memory_, host_work_, chunk, config_.timeout);
        const Status mapped = stream_.synchronize();
        if (!remote.ok() || !mapped.ok()) return remote.ok() ? mapped : remote;
        const npu::LaunchConfig reduce = launch_as("moe_combine_reduce");
        if (Status s = npu::launch(stream_, reduce, moe_combine_reduce, host_work_, chunk); !s.ok()) return s;
        if (Status s = stream_.synchronize(); !s.ok()) return s;
    }
    return {};
}

Status CombineLaunches::start(const CombineCall& call) {
    if (config_.streams()) {
        // finish() does the whole exchange in this case.
        if (!host_served_.empty()) return host_work_ = stream_arguments(call), Status{};
        return npu::launch(stream_, launch_as("moe_combine_stream"), moe_combine_stream, stream_arguments(call));
    }
    const CombineSend send = send_arguments(call);
    if (!host_served_.empty()) send_remote_rows(memory_, send);
    if (Status s = npu::launch(stream_, launch_as("moe_combine_direct_sender"), moe_combine_direct_sender, send);
        !s.ok())
        return s;
    if (!host_served_.empty()) {
        if (Status s = memory_.quiet(); !s.ok()) return s;
    }
    return npu::launch(stream_, launch_as("moe_combine_receiver"), moe_combine_receiver, receive_arguments(call));
}

}  // namespace npushmem::moe
