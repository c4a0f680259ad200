#include "core/moe/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "core/moe/stream/remote_stream.hpp"
#include "core/moe/stream/row_order.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {
namespace {

constexpr auto canary_byte = std::byte{0xC5};

// Allocates `block`; the error names the purpose.
Status allocate_block(SymmetricMemory& memory, Bytes size, const char* purpose, SymmetricBlock& block) {
    auto taken = memory.allocate(size);
    if (!taken.ok()) return taken.status().within(fmt::format("moe: {} bytes for {}", size.value(), purpose));
    block = SymmetricBlock(memory, taken.value());
    return {};
}

}  // namespace

Combine::Combine(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device)
    : config_(config),
      memory_(memory),
      device_(device),
      layout_(memory.n_pes(), config.chunk_slots(), config.row_bytes()),
      reduce_(best_reduce(config.input, config.output)),
      stream_(device) {}

Result<std::unique_ptr<Combine>> Combine::create(const CombineConfig& config, SymmetricMemory& memory,
                                                 npu::Device& device, const Status& local_status) {
    SymmetricBlock record;
    if (Status status = allocate_block(memory, Bytes{sizeof(AgreementRecord)}, "agreement", record); !status.ok())
        return status;
    const Status own = local_status.ok() ? config.validate() : local_status;
    if (Status status = agree(memory, record.data(), config, own); !status.ok()) return status;
    std::unique_ptr<Combine> combine(new Combine(config, memory, device));
    combine->agreement_block_ = std::move(record);
    if (Status status = combine->allocate(); !status.ok()) return status;
    combine->host_served_ = unmapped_ranks(device.fabric(), memory, combine->region_.data());
    if (Status status = agree_all_ok(memory, combine->agreement_block_.data(), combine->check_rings()); !status.ok())
        return status;
    // All memory is zeroed and all canaries are written before any rows arrive.
    if (Status status = memory.barrier(); !status.ok()) return status;
    return combine;
}

Status Combine::allocate() {
    if (Status s = allocate_block(memory_, PublishedFailures::size, "published failures", failures_block_); !s.ok())
        return s;
    failures_ = std::make_unique<PublishedFailures>(memory_, failures_block_.data());
    if (Status s = allocate_block(memory_, RoutingExchange::size(config_), "the routing", routing_block_); !s.ok())
        return s;
    if (Status s = allocate_block(memory_, layout_.total(), "two buffers of slots", region_); !s.ok()) return s;
    routing_exchange_ = std::make_unique<RoutingExchange>(memory_, routing_block_.data());
    plant_canaries();
    if (streams()) {
        if (Status s = allocate_block(memory_, rings().layout.total(), "the rings", rings_); !s.ok()) return s;
    }
    if (!config_.audit) return {};
    expected_.assign(2 * layout_.slots().value(), 0);
    return allocate_block(memory_, Bytes{expected_.size() * sizeof(std::uint64_t)}, "the audit's counters", arrivals_);
}

RingMemory Combine::rings() const {
    return {rings_.data(), RingLayout(memory_.n_pes(), ring_shape(config_, memory_.n_pes()), config_.ring_place),
            config_.timeout};
}

Status Combine::check_rings() const {
    if (!streams()) return {};
    if (Status s = rings().layout.shape().check(); !s.ok()) return s;
    if (device_.config().cores() >= 2) return {};
    return {Code::unsupported, fmt::format("moe: mode {} needs a device of two cores, one to send and one to receive",
                                           name_of(config_.mode))};
}

void Combine::plant_canaries() {
    for (const std::uint64_t parity : {0U, 1U}) {
        std::byte* canary = region_.data() + layout_.canary(parity).value();
        std::fill_n(canary, SlotLayout::line, canary_byte);
    }
}

Status Combine::set_routing(const RankRouting& own, const Status& local_status) {
    Status own_status = failures_->handle_status().ok() ? local_status : failures_->handle_status();
    if (own_status.ok()) own_status = check_own_routing(config_, own, memory_.my_pe());
    if (Status s = agree_all_ok(memory_, agreement_block_.data(), own_status); !s.ok()) return s;
    routing_exchange_->publish(own);
    if (Status s = memory_.barrier(); !s.ok()) return s;
    return agree_all_ok(memory_, agreement_block_.data(), collect(own));
}

Status Combine::collect(const RankRouting& own) {
    routed_ = collected_ = false;
    if (Status s = routing_exchange_->collect(); !s.ok()) return s;
    const ExpertPlacement placement(config_.experts, memory_.n_pes());
    auto plan = build_combine_plan(routing_exchange_->all(), placement, memory_.my_pe());
    if (!plan.ok()) return plan.status();
    adopt(std::move(plan).value(), own);
    collected_ = true;
    return {};
}

void Combine::adopt(CombinePlan plan, const RankRouting& own) {
    plan_ = std::move(plan);
    const ExpertPlacement placement(config_.experts, memory_.n_pes());
    if (streams()) order_ = row_order(own.experts, placement, config_.chunk_slots(), config_.chunks());
    tokens_ = Tokens{own.tokens(config_.top_k)};
    experts_.assign(own.experts.begin(), own.experts.end());
    weights_.assign(own.weights.begin(), own.weights.end());
    routed_ = true;
    collected_ = false;
}

Status Combine::check_plan(const CombinePlan& plan) const {
    if (!collected_) return {Code::state, "set the routing before a plan"};
    if (Status s = check_tables(plan, config_.slots()); !s.ok()) return s;
    if (Status s = check_slots(plan, routing_exchange_->all()); !s.ok() || !streams()) return s;
    return check_order(plan);
}

Status Combine::set_plan(const PlanTables& tables, const Status& local_status) {
    CombinePlan plan = plan_;
    plan.offset_table.assign(tables.offset_table.begin(), tables.offset_table.end());
    plan.length_table.assign(tables.length_table.begin(), tables.length_table.end());
    plan.slots.assign(tables.slots.begin(), tables.slots.end());
    plan.rows = Rows{plan.slots.size()};
    Status own_status = failures_->handle_status().ok() ? local_status : failures_->handle_status();
    if (own_status.ok()) own_status = check_plan(plan);
    if (Status s = agree_all_ok(memory_, agreement_block_.data(), own_status); !s.ok()) return s;
    plan_ = std::move(plan);
    return {};
}

Status Combine::check_buffers(const std::byte* x, const std::byte* out) const {
    if (!routed_) return {Code::state, "combine before any routing was set"};
    const Extent in{"x", x, bytes_of(plan_.rows, config_.row_bytes())};
    const Extent target{"out", out, bytes_of(Rows{tokens_.value()}, out_row())};
    const Extent slots{"the receive memory of this handle", region_.data(), layout_.total()};
    if (Status s = check_address(in, size_of(config_.input)); !s.ok()) return s;
    if (Status s = check_address(target, size_of(config_.output)); !s.ok()) return s;
    if (Status s = check_apart(in, target); !s.ok()) return s;
    if (Status s = check_apart(in, slots); !s.ok()) return s;
    return check_apart(target, slots);
}

Status Combine::combine(const std::byte* x, std::byte* out) {
    Status started = start(x, out);
    return started.ok() ? finish() : started;
}

Status Combine::start(const std::byte* x, std::byte* out) {
    if (!failures_->handle_status().ok()) return failures_->handle_status();
    ++epoch_;
    if (Status s = check_buffers(x, out); !s.ok()) return abort_call(s);
    if (Status s = launch(x, out); !s.ok()) return abort_call(s);
    return {};
}

Status Combine::finish() {
    const bool with_host = streams() && !host_served_.empty();
    if (Status s = with_host ? stream_with_host() : stream_.synchronize(); !s.ok()) return abort_call(s);
    if (!config_.audit) return {};
    count_expected();
    return check_memory();
}

Status Combine::abort_call(const Status& cause) {
    // The stream does not run the launches behind a failed one.
    (void)stream_.synchronize();
    const Status result = failures_->write(cause, aborted_peer());
    signal_abort();
    return result;
}

std::optional<int> Combine::aborted_peer() const {
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        if (rank == memory_.my_pe()) continue;
        if (streams() && (abort_received(rings().word(rings().layout.head(rank))) ||
                          abort_received(rings().word(rings().layout.tail(rank))))) {
            return rank;
        }
        if (abort_received(own_signal(send_arguments(nullptr), rank))) return rank;
    }
    return std::nullopt;
}

// Best effort: the other ranks also have their own timeouts.
void Combine::signal_abort() {
    if (streams()) {
        const StreamCombine work = stream_arguments(nullptr, nullptr);
        (void)npu::launch(stream_, launch_as("moe_stream_signal_abort"), moe_stream_signal_abort, work);
        (void)stream_.synchronize();
        if (host_served_.empty()) return;
        signal_stream_abort_remotely(memory_, work);
        (void)memory_.quiet();
        return;
    }
    const CombineSend send = send_arguments(nullptr);
    (void)npu::launch(stream_, launch_as("moe_combine_signal_abort"), moe_combine_signal_abort, send);
    (void)stream_.synchronize();
    if (!host_served_.empty()) {
        signal_abort_remotely(memory_, send);
        (void)memory_.quiet();
    }
}

Status Combine::reset() {
    // All ranks have arrived: no kernel of this handle runs, and no transfer is in flight.
    if (Status s = memory_.barrier(); !s.ok()) return s;
    std::memset(region_.data(), 0, layout_.buffer(0).value());
    if (streams()) std::memset(rings_.data(), 0, rings().layout.ring(0).value());
    std::ranges::fill(expected_, 0);
    if (config_.audit) std::memset(arrivals_.data(), 0, expected_.size() * sizeof(std::uint64_t));
    epoch_ = 0;
    routed_ = collected_ = false;
    plan_ = {};
    tokens_ = {};
    order_ = {};
    failures_->clear();
    return memory_.barrier();
}

npu::LaunchConfig Combine::launch_as(const char* name) const {
    // In mode stream a core serves one end of a ring, and every rank has two ends here.
    const int sub_cores = device_.config().vector_cores;
    const int of_device = config_.route == CopyRoute::staged ? device_.config().blocks : memory_.n_pes();
    const int wanted = streams() ? (2 * memory_.n_pes() + sub_cores - 1) / sub_cores : of_device;
    npu::LaunchConfig config(std::clamp(wanted, 1, device_.config().blocks), std::source_location{});
    config.name = name;
    return config;
}

Bytes Combine::out_row() const {
    return bytes_of(Elements{static_cast<std::uint64_t>(config_.hidden)}, size_of(config_.output));
}

CombineSend Combine::send_arguments(const std::byte* x) const {
    CombineSend send = send_from(plan_, layout_);
    send.x = x;
    send.num_ranks = memory_.n_pes();  // also without a plan
    send.host_served = host_served_.empty() ? nullptr : host_served_.data();
    send.region = region_.data();
    send.arrivals = arrivals();
    send.epoch = epoch_;
    send.route = config_.route;
    return send;
}

CombineReceive Combine::receive_arguments(std::byte* out) const {
    CombineReceive receive;
    receive.region = region_.data();
    receive.layout = layout_;
    receive.epoch = epoch_;
    receive.num_ranks = memory_.n_pes();
    receive.experts = experts_.data();
    receive.weights = weights_.data();
    receive.tokens = tokens_;
    receive.top_k = config_.top_k;
    receive.out = out;
    receive.columns = Elements{static_cast<std::uint64_t>(config_.hidden)};
    receive.out_row = out_row();
    receive.reduce = reduce_;
    receive.timeout = config_.timeout;
    return receive;
}

StreamCombine Combine::stream_arguments(const std::byte* x, std::byte* out) const {
    return {send_arguments(x),   receive_arguments(out), rings(),         order_.slots.data(),
            order_.first.data(), config_.chunk(),        config_.chunks()};
}

// All rows of a chunk must arrive before the chunk is added up, and the chunk must be added up before rows of the next
// one arrive.
Status Combine::stream_with_host() {
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

Status Combine::launch(const std::byte* x, std::byte* out) {
    if (streams()) {
        // finish() does the whole exchange in this case.
        if (!host_served_.empty()) return host_work_ = stream_arguments(x, out), Status{};
        return npu::launch(stream_, launch_as("moe_combine_stream"), moe_combine_stream, stream_arguments(x, out));
    }
    const CombineSend send = send_arguments(x);
    if (!host_served_.empty()) send_remote_rows(memory_, send);
    if (Status s = npu::launch(stream_, launch_as("moe_combine_direct_sender"), moe_combine_direct_sender, send);
        !s.ok())
        return s;
    if (!host_served_.empty()) {
        if (Status s = memory_.quiet(); !s.ok()) return s;
    }
    return npu::launch(stream_, launch_as("moe_combine_receiver"), moe_combine_receiver, receive_arguments(out));
}

CombineTraffic Combine::traffic() const {
    CombineTraffic traffic = streams() ? ring_traffic(rings()) : CombineTraffic{};
    traffic.calls = epoch_;
    if (!streams()) traffic.signals = epoch_ * static_cast<std::uint64_t>(memory_.n_pes());
    return traffic;
}

std::uint64_t* Combine::arrivals() const { return reinterpret_cast<std::uint64_t*>(arrivals_.data()); }

void Combine::count_expected() {
    std::uint64_t* counts = expected_.data() + (epoch_ & 1U) * layout_.slots().value();
    for (std::size_t slot = 0; slot < experts_.size(); ++slot) {
        counts[layout_.in_buffer(slot)] += experts_[slot] >= 0 ? 1 : 0;
    }
}

Status Combine::check_canary(std::uint64_t epoch) const {
    const std::byte* canary = region_.data() + layout_.canary(epoch).value();
    const std::byte* end = canary + SlotLayout::line;
    const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != canary_byte; });
    if (wrong == end) return {};
    return {Code::protocol,
            fmt::format("moe: byte {} behind the last slot of buffer {} was overwritten", wrong - canary, epoch & 1U)};
}

// Checks that the canaries behind the rings are zero, and that the heads at the senders equal the bytes taken.
Status Combine::check_rings_at_rest() const {
    const RingMemory memory = rings();
    for (int source = 0; source < memory.layout.ranks(); ++source) {
        const std::byte* canary = memory.region + memory.layout.canary(source).value();
        const std::byte* end = canary + RingLayout::line;
        const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != std::byte{0}; });
        if (wrong != end) {
            return {Code::protocol,
                    fmt::format("moe: byte {} behind the ring of rank {} was overwritten", wrong - canary, source)};
        }
        RingReceiverState state;
        std::memcpy(static_cast<void*>(&state), memory.word(memory.layout.receiver_state(source)), sizeof state);
        if (state.taken == state.head) continue;
        return {Code::protocol,
                fmt::format("moe, call {}: {} bytes of rank {} were taken from its ring, but its head is "
                            "{}",
                            epoch_, state.taken, source, state.head)};
    }
    return {};
}

Status Combine::check_memory() const {
    for (const std::uint64_t parity : {0U, 1U}) {
        if (Status s = check_canary(parity); !s.ok()) return s;
    }
    if (streams()) {
        if (Status s = check_rings_at_rest(); !s.ok()) return s;
    }
    if (!config_.audit) return {};
    // Only the buffer of the last call is stable: a rank that is ahead may already fill the other one.
    const std::size_t first = (epoch_ & 1U) * layout_.slots().value();
    for (std::size_t i = first; i < first + layout_.slots().value(); ++i) {
        // Acquire: pairs with the sender's atomic add, made before the signal that this call waited for.
        const std::uint64_t seen = __atomic_load_n(arrivals() + i, __ATOMIC_ACQUIRE);
        if (seen == expected_[i]) continue;
        return {Code::protocol,
                fmt::format("moe, call {}: {} rows have been put into slot {} of buffer {} since creation, the "
                            "routing says {}",
                            epoch_, seen, i - first, epoch_ & 1U, expected_[i])};
    }
    return {};
}

}  // namespace npushmem::moe
