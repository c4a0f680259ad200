// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/combine.hpp"

#include <fmt/format.h>

#include <cstring>
#include <random>
#include <utility>

namespace npushmem::moe {
namespace {

Status check_rings(const CombineConfig& config, const CombineMemory& blocks, const npu::Device& device) {
    if (!config.streams()) return {};
    if (Status s = blocks.rings().layout.shape().check(); !s.ok()) return s;
    if (device.config().cores() >= 2) return {};
    return {Code::unsupported, fmt::format("moe: mode {} needs a device of two cores, one to send and one to receive",
                                           name_of(config.mode))};
}

// Flow control traffic of all rings that begin or end at this PE. Call it while no call runs.
CombineTraffic ring_traffic(const RingMemory& rings) {
    CombineTraffic sum;
    for (int rank = 0; rank < rings.layout.ranks(); ++rank) {
        RingSenderState sender;
        RingReceiverState receiver;
        std::memcpy(static_cast<void*>(&sender), rings.word(rings.layout.sender_state(rank)), sizeof sender);
        std::memcpy(static_cast<void*>(&receiver), rings.word(rings.layout.receiver_state(rank)), sizeof receiver);
        sum.tails += sender.traffic.batches;
        sum.splits += sender.traffic.splits;
        sum.heads += receiver.traffic.releases;
        sum.waits += sender.traffic.waits + receiver.traffic.waits;
    }
    return sum;
}

}  // namespace

Combine::Combine(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device, Blocks blocks)
    : config_(config),
      transport_(config.transport(memory.n_pes())),
      memory_(memory),
      agreement_block_(std::move(blocks.agreement)),
      failures_block_(std::move(blocks.failures)),
      routing_block_(std::move(blocks.routing)),
      slots_(std::move(blocks.slots)),
      failures_(memory, failures_block_.data()),
      routing_(config_, memory, routing_block_.data()),
      launches_(transport_, memory, device, slots_, routing_) {}

Result<std::unique_ptr<Combine>> Combine::create(const CombineConfig& config, SymmetricMemory& memory,
                                                 npu::Device& device, const Status& local_status) {
    auto record = allocate_block(memory, Bytes{sizeof(AgreementRecord)}, "agreement");
    if (!record.ok()) return record.status();
    const Status own = local_status.ok() ? config.validate() : local_status;
    if (Status status = agree(memory, record.value().data(), config, own); !status.ok()) return status;
    auto failures = allocate_block(memory, PublishedFailures::size, "published failures");
    if (!failures.ok()) return failures.status();
    auto routing = allocate_block(memory, RoutingExchange::size(config), "the routing");
    if (!routing.ok()) return routing.status();
    auto slots = CombineMemory::allocate(config, memory);
    if (!slots.ok()) return slots.status();
    std::unique_ptr<Combine> combine(new Combine(config, memory, device,
                                                 {std::move(record).value(), std::move(failures).value(),
                                                  std::move(routing).value(), std::move(slots).value()}));
    const Status rings = check_rings(config, combine->slots_, device);
    combine->draw_origin();
    if (Status status = agree_all_ok(memory, combine->agreement_block_.data(), rings); !status.ok()) return status;
    combine->launches_.publish_readable_ranks();
    // All memory is zeroed and all canaries are written before any rows arrive.
    if (Status status = memory.barrier(); !status.ok()) return status;
    if (Status status = combine->read_origin(); !status.ok()) return status;
    return combine;
}

// Rank 0 shares the origin in the memory of the routing exchange, before a barrier. All ranks read it before the next
// one, and so before rank 0 publishes a routing.
void Combine::draw_origin() {
    if (memory_.my_pe() != 0) return;
    std::random_device random;
    const std::uint64_t origin = std::uint64_t{random()} << 32U | random();
    std::memcpy(routing_block_.data(), &origin, sizeof origin);
}

Status Combine::read_origin() {
    routings_ = 0;
    routing_id_ = {};
    return memory_.fetch(&origin_, routing_block_.data(), Bytes{sizeof origin_}, 0);
}

Status Combine::set_routing(const RankRouting& own, const Status& local_status) {
    Status own_status = failures_.handle_status().ok() ? local_status : failures_.handle_status();
    if (own_status.ok()) own_status = check_own_routing(config_, own, memory_.my_pe());
    if (Status s = agree_all_ok(memory_, agreement_block_.data(), own_status); !s.ok()) return s;
    routing_.publish(own);
    if (Status s = memory_.barrier(); !s.ok()) return s;
    auto collected = routing_.collect(own);
    if (Status s = agree_all_ok(memory_, agreement_block_.data(), collected.status()); !s.ok()) return s;
    routing_.take_collected(std::move(collected).value());
    number_routing();
    return {};
}

Status Combine::adopt(ReceivedRows received, const RankRouting& own) {
    number_routing();
    return routing_.adopt(std::move(received), own);
}

Status Combine::restore(std::shared_ptr<const RoutedRows> rows, const RoutingId& id, bool dispatched,
                        const Status& local_status) {
    const Status own = failures_.handle_status().ok() ? local_status : failures_.handle_status();
    if (Status s = agree_on_routing(memory_, agreement_block_.data(), id, dispatched, own); !s.ok()) return s;
    routing_.restore(std::move(rows));
    routing_id_ = id;
    return {};
}

Status Combine::set_plan(const PlanTables& tables, const Status& local_status) {
    CombinePlan plan = routing_.plan();
    plan.offset_table.assign(tables.offset_table.begin(), tables.offset_table.end());
    plan.length_table.assign(tables.length_table.begin(), tables.length_table.end());
    plan.slots.assign(tables.slots.begin(), tables.slots.end());
    plan.rows = Rows{plan.slots.size()};
    Status own_status = failures_.handle_status().ok() ? local_status : failures_.handle_status();
    if (own_status.ok()) own_status = routing_.check(plan);
    if (Status s = agree_all_ok(memory_, agreement_block_.data(), own_status); !s.ok()) return s;
    number_routing();
    routing_.replace(std::move(plan));
    return {};
}

Status Combine::combine(const std::byte* x, std::byte* out) {
    Status started = start(x, out);
    return started.ok() ? finish() : started;
}

Status Combine::start(const std::byte* x, std::byte* out, const Status& local_status, bool weighted) {
    if (!failures_.handle_status().ok()) return failures_.handle_status();
    const CombineCall call{x, out, ++epoch_, weighted};
    if (!local_status.ok()) return abort_call(local_status);
    if (Status s = launches_.check_buffers(call); !s.ok()) return abort_call(s);
    if (Status s = launches_.start(call); !s.ok()) return abort_call(s);
    return {};
}

Status Combine::finish() {
    if (Status s = launches_.finish(); !s.ok()) return abort_call(s);
    if (!config_.audit) return {};
    slots_.count_expected(routing_.experts(), epoch_);
    return check_memory();
}

Status Combine::abort_call(const Status& cause) {
    launches_.drain();
    Status result = failures_.write(cause, launches_.aborted_peer());
    signal_abort();
    return result;
}

Status Combine::reset() {
    // All ranks have arrived: no kernel of this handle runs, and no transfer is in flight.
    if (Status s = memory_.barrier(); !s.ok()) return s;
    slots_.clear();
    epoch_ = 0;
    routing_.clear();
    failures_.clear();
    draw_origin();
    if (Status s = memory_.barrier(); !s.ok()) return s;
    return read_origin();
}

CombineTraffic Combine::traffic() const {
    CombineTraffic traffic = config_.streams() ? ring_traffic(slots_.rings()) : CombineTraffic{};
    traffic.calls = epoch_;
    if (!config_.streams()) traffic.signals = epoch_ * static_cast<std::uint64_t>(memory_.n_pes());
    return traffic;
}

}  // namespace npushmem::moe
