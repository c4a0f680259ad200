// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/combine_launches.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/moe/stream/remote_stream.hpp"

namespace npushmem::moe {

RoutedPlan::RoutedPlan(const CombineConfig& config, SymmetricMemory& memory, std::byte* exchange)
    : config_(config),
      transport_(config.transport(memory.n_pes())),
      my_pe_(memory.my_pe()),
      placement_(config.experts, memory.n_pes()),
      exchange_(config, memory, exchange) {}

Result<std::shared_ptr<const RoutedRows>> RoutedPlan::collect(const RankRouting& own) {
    collected_ = false;
    if (Status s = exchange_.collect(); !s.ok()) return s;
    if (per_rank()) {
        auto received = received_rows(exchange_.all(), config_.top_k, placement_, my_pe_);
        if (!received.ok()) return received.status();
        return rows_of(std::move(received).value(), own);
    }
    auto plan = build_combine_plan(exchange_.all(), placement_, my_pe_, config_.expert_alignment);
    if (!plan.ok()) return plan.status();
    return rows_of({std::move(plan).value(), {}, {}}, own);
}

void RoutedPlan::take_collected(std::shared_ptr<const RoutedRows> rows) {
    set(std::move(rows));
    collected_ = true;
}

Status RoutedPlan::adopt(ReceivedRows received, const RankRouting& own) {
    routed_ = collected_ = false;
    auto rows = rows_of(std::move(received), own);
    if (!rows.ok()) return rows.status();
    set(std::move(rows).value());
    return {};
}

void RoutedPlan::restore(std::shared_ptr<const RoutedRows> rows) {
    collected_ = false;
    set(std::move(rows));
}

void RoutedPlan::set(std::shared_ptr<const RoutedRows> rows) {
    rows_ = std::move(rows);
    if (config_.streams()) {
        order_ = row_order(rows_->experts, ExpertPlacement(transport_.experts, placement_.ranks()),
                           transport_.chunk_slots(), transport_.chunks());
    }
    routed_ = true;
}

Result<std::shared_ptr<const RoutedRows>> RoutedPlan::rows_of(ReceivedRows received, const RankRouting& own) const {
    auto rows = std::make_shared<RoutedRows>();
    rows->tokens = Tokens{own.tokens(config_.top_k)};
    rows->choices.assign(own.experts.begin(), own.experts.end());
    number_rows(*rows, own);
    if (!per_rank()) {
        rows->plan = std::move(received.plan);
        rows->experts = rows->choices;
        rows->weights.assign(own.weights.begin(), own.weights.end());
        return std::shared_ptr<const RoutedRows>(std::move(rows));
    }
    auto plan = build_combine_plan(received.plan, transport_.top_k, received.choices, config_.top_k, placement_, my_pe_,
                                   config_.expert_alignment);
    if (!plan.ok()) return plan.status();
    rows->plan = std::move(plan).value();
    rows->received = std::move(received);
    rows->experts = std::move(rows->received.own.ranks);
    rows->weights = std::move(rows->received.own.ones);
    relate(*rows);
    return std::shared_ptr<const RoutedRows>(std::move(rows));
}

void RoutedPlan::number_rows(RoutedRows& rows, const RankRouting& own) const {
    rows.choice_weights.assign(own.weights.begin(), own.weights.end());
    std::vector<std::uint32_t> next(static_cast<std::size_t>(config_.experts), 0);
    for (const std::int32_t expert : own.experts)
        rows.rows_in_fragments.push_back(expert < 0 ? 0 : next[static_cast<std::size_t>(expert)]++);
}

void RoutedPlan::relate(RoutedRows& rows) const {
    if (per_rank()) rows.rank_rows = relate_rows(rows.received, rows.plan, config_.top_k);
}

void RoutedPlan::replace(CombinePlan plan) {
    auto rows = std::make_shared<RoutedRows>(*rows_);
    rows->plan = std::move(plan);
    rows->is_ordered = check_order(rows->plan).ok();
    relate(*rows);
    rows_ = std::move(rows);
}

Status RoutedPlan::check(const CombinePlan& plan) const {
    if (!collected_) return {Code::state, "set the routing before a plan"};
    if (Status s = check_tables(plan, config_.slots()); !s.ok()) return s;
    if (Status s = check_slots(plan, exchange_.all()); !s.ok() || !config_.streams() || per_rank()) return s;
    return check_order(plan);
}

void RoutedPlan::clear() {
    routed_ = collected_ = false;
    rows_ = std::make_shared<RoutedRows>();
    order_ = {};
}

namespace {

Bytes output_row_bytes(const CombineConfig& config) {
    return bytes_of(Elements{static_cast<std::uint64_t>(config.hidden)}, size_of(config.output));
}

SumShape shape_of(const CombineConfig& config) { return {config.narrow().hidden(), config.narrow().block()}; }

// True if sums are computed in the unified buffer.
bool stages_sums(const CombineConfig& config) {
    return config.route == CopyRoute::staged && !config.streams() && config.combine_type == NarrowType::none;
}

// The sum of the rows that return to a token.
Reduction reduction_of(const CombineConfig& config) {
    const ReduceFunction function = config.combine_type == NarrowType::none
                                        ? best_reduce(config.input, config.output)
                                        : best_narrow(config.combine_type, config.output).reduce;
    return {function,     shape_of(config), stages_sums(config),
            config.input, config.output,    best_tree(config.input, config.output)};
}

}  // namespace

CombineLaunches::CombineLaunches(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                                 const CombineMemory& blocks, const RoutedPlan& routing)
    : config_(config),
      memory_(memory),
      device_(device),
      blocks_(blocks),
      routing_(routing),
      reduction_(reduction_of(config)),
      host_served_(unmapped_ranks(device.fabric(), memory, blocks.region())),
      stream_(device) {}

Status CombineLaunches::check_buffers(const CombineCall& call) const {
    if (!routing_.is_set()) return {Code::state, "combine before any routing was set"};
    const Extent in{"x", call.x, bytes_of(routing_.plan().rows, config_.row_bytes())};
    const Extent target{"out", call.out, bytes_of(Rows{routing_.tokens().value()}, output_row_bytes(config_))};
    const Extent slots{"the receive memory of this handle", blocks_.region(), blocks_.layout().total()};
    const InPlaceMemory in_place = blocks_.in_place();
    const Bytes offers = in_place.exists() ? in_place.layout.total() : Bytes{0};
    if (Status s = check_address(in, size_of(config_.input)); !s.ok()) return s;
    if (Status s = check_address(target, size_of(config_.output)); !s.ok()) return s;
    if (Status s = check_apart(in, target); !s.ok()) return s;
    for (const Extent& own : {slots, Extent{"the offers of this handle", in_place.block, offers}}) {
        if (Status s = check_apart(in, own); !s.ok()) return s;
        if (Status s = check_apart(target, own); !s.ok()) return s;
    }
    return {};
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
    const CombineCall call{nullptr, nullptr, epoch, true};
    if (config_.streams()) {
        const StreamCombine work = stream_arguments(send_arguments(call), call);
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

void CombineLaunches::publish_readable_ranks() {
    const InPlaceMemory in_place = blocks_.in_place();
    if (!in_place.exists() || config_.route == CopyRoute::staged) return;  // staged sums are no trees
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        if (host_served_.empty() || host_served_[static_cast<std::size_t>(rank)] == 0)
            memory_.signal(in_place.word(in_place.layout.can_read(memory_.my_pe())), 1, rank);
    }
}

// True if all ranks can read x where it is.
bool CombineLaunches::can_offer(const std::byte* x) {
    const InPlaceMemory in_place = blocks_.in_place();
    const Bytes size = bytes_of(routing_.plan().rows, config_.row_bytes());
    if (!config_.in_place || !in_place.exists() || !host_served_.empty() || !routing_.rows()->is_ordered) return false;
    if (size == Bytes{0} || !is_beside(in_place.block, x) || !is_beside(in_place.block, x + size.value() - 1))
        return false;
    if (!all_can_read_) {
        all_can_read_ = true;
        for (int rank = 0; rank < memory_.n_pes(); ++rank)
            // Acquire: the store came before a barrier.
            if (__atomic_load_n(in_place.word(in_place.layout.can_read(rank)), __ATOMIC_ACQUIRE) == 0)
                all_can_read_ = false;
    }
    return *all_can_read_;
}

// True if both lie at the same distance in the memory of each rank.
bool CombineLaunches::is_beside(const std::byte* symmetric, const std::byte* other) const {
    const npu::Fabric& fabric = device_.fabric();
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        const auto* const there = static_cast<const std::byte*>(fabric.remote(symmetric, rank));
        const auto* const other_there = static_cast<const std::byte*>(fabric.remote(other, rank));
        if (other_there == nullptr || other_there - there != other - symmetric) return false;
    }
    return true;
}

// What this rank puts to each rank to offer x.
const std::byte* CombineLaunches::offers_of(const std::byte* x) {
    const InPlaceMemory in_place = blocks_.in_place();
    const CombinePlan& plan = routing_.plan();
    const auto place = static_cast<std::uint64_t>(x - in_place.block);
    const std::size_t bytes = in_place.layout.offer_bytes().value();
    offers_.resize(static_cast<std::size_t>(plan.ranks) * bytes);
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
        std::byte* const offer = offers_.data() + static_cast<std::size_t>(rank) * bytes;
        std::memcpy(offer, &place, sizeof place);
        auto* const first_rows = reinterpret_cast<std::int32_t*>(offer + sizeof place);
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert)
            first_rows[expert] = plan.offset_table[plan.entry(expert, rank)];
    }
    return offers_.data();
}

ReadInPlace CombineLaunches::read_in_place(bool weighted) const {
    ReadInPlace read;
    read.memory = blocks_.in_place();
    if (!read.memory.exists()) return read;
    const RoutedRows& rows = *routing_.rows();
    read.offers_own_rows = left_in_place_;
    read.experts = rows.choices.data();
    read.weights = weighted ? rows.choice_weights.data() : ones_.data();
    read.row_in_fragment = rows.rows_in_fragments.data();
    read.top_k = routing_.config().top_k;
    read.placement = routing_.placement();
    read.row = config_.row_bytes();
    read.per_rank = routing_.rank_rows() != nullptr;
    return read;
}

CombineSend CombineLaunches::send_arguments(const CombineCall& call) const {
    CombineSend send = send_from(routing_.sent(), blocks_.layout());
    send.x = call.x;
    send.num_ranks = memory_.n_pes();  // also without a plan
    send.host_served = host_served_.empty() ? nullptr : host_served_.data();
    send.region = blocks_.region();
    send.arrivals = blocks_.arrivals();
    send.epoch = call.epoch;
    send.route = config_.route;
    send.in_place.memory = blocks_.in_place();
    return send;
}

Result<ComputedRows> CombineLaunches::computed_rows(bool weighted) {
    ComputedRows computed;
    const bool quantizes = config_.combine_type != NarrowType::none;
    computed.x_row = config_.row_bytes();
    computed.narrow = config_.narrow();
    const RankRows* rows = routing_.rank_rows();
    if (rows != nullptr) {
        computed.first = rows->first.data();
        computed.parts = rows->parts.data();
        computed.weights = weighted ? rows->weights.data() : ones_.data();
        const ElementType type = quantizes ? ElementType::float32 : config_.input;
        computed.sum = {best_reduce(config_.input, type), shape_of(config_), stages_sums(config_), config_.input, type};
    }
    if (!quantizes) return computed;
    computed.quantize =
        best_narrow(config_.combine_type, rows != nullptr ? ElementType::float32 : config_.input).quantize;
    if (rows == nullptr) return computed;
    const Rows cores{static_cast<std::uint64_t>(device_.config().blocks * device_.config().vector_cores)};
    const Bytes row = bytes_of(Elements{static_cast<std::uint64_t>(config_.hidden)}, ElementSize{sizeof(float)});
    if (Status s = floats_.reserve(cores, row); !s.ok()) return s;
    computed.floats = reinterpret_cast<float*>(floats_.data());
    return computed;
}

// Sets the rows to send: those of x, or rows that are computed when they are sent. Staged, and where the host sends,
// they must be in memory before.
Status CombineLaunches::prepare_rows(CombineSend& send, bool weighted) {
    auto computed = computed_rows(weighted);
    if (!computed.ok()) return computed.status();
    if (!computed.value().any()) return {};
    send.computed = computed.value();
    if (host_served_.empty() && (config_.streams() || config_.route != CopyRoute::staged)) {
        send.computed.sum.shape.streaming =
            !config_.streams() && config_.route == CopyRoute::streaming && send.computed.quantize == nullptr;
        return {};
    }
    const Rows rows = routing_.sent().rows;
    if (Status s = computed_.reserve(rows, config_.returned_row()); !s.ok()) return s;
    Status s = npu::launch(stream_, launch_as("moe_combine_compute_rows"), moe_combine_compute_rows, send, rows.value(),
                           computed_.data());
    send.x = computed_.data();
    send.computed = {};
    // The host sends rows, too.
    return s.ok() && !host_served_.empty() ? stream_.synchronize() : s;
}

CombineReceive CombineLaunches::receive_arguments(const CombineCall& call) const {
    CombineReceive receive;
    receive.region = blocks_.region();
    receive.layout = blocks_.layout();
    receive.epoch = call.epoch;
    receive.num_ranks = memory_.n_pes();
    receive.experts = routing_.experts().data();
    receive.weights = call.weighted ? routing_.weights().data() : ones_.data();
    receive.tokens = routing_.tokens();
    receive.top_k = config_.top_k;
    receive.out = call.out;
    receive.out_row = output_row_bytes(config_);
    receive.reduction = reduction_;
    receive.timeout = config_.timeout;
    return receive;
}

StreamCombine CombineLaunches::stream_arguments(const CombineSend& send, const CombineCall& call) const {
    const RowOrder& order = routing_.order();
    return {send,
            receive_arguments(call),
            blocks_.rings(),
            order.slots.data(),
            order.first.data(),
            config_.chunk(),
            config_.chunks()};
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
    if (!call.weighted)
        ones_.resize(std::max({ones_.size(), routing_.weights().size(), routing_.plan().slots.size(),
                               routing_.rows()->choices.size()}),
                     1.0F);
    CombineSend send = send_arguments(call);
    left_in_place_ = can_offer(call.x);
    if (left_in_place_) send.in_place.offers = offers_of(call.x);
    if (!left_in_place_) {
        if (Status s = prepare_rows(send, call.weighted); !s.ok()) return s;
    }
    if (config_.streams()) {
        const StreamCombine work = stream_arguments(send, call);
        // finish() does the whole exchange in this case.
        if (!host_served_.empty()) return host_work_ = work, Status{};
        return npu::launch(stream_, launch_as("moe_combine_stream"), moe_combine_stream, work);
    }
    CombineReceive receive = receive_arguments(call);
    receive.in_place = read_in_place(call.weighted);
    if (Status s = send_directly(send); !s.ok()) return s;
    return npu::launch(stream_, launch_as("moe_combine_receiver"), moe_combine_receiver, receive);
}

Status CombineLaunches::send_directly(const CombineSend& send) {
    if (!host_served_.empty()) send_remote_rows(memory_, send);
    const Status s = npu::launch(stream_, launch_as("moe_combine_direct_sender"), moe_combine_direct_sender, send);
    return s.ok() && !host_served_.empty() ? memory_.quiet() : s;
}

}  // namespace npushmem::moe
