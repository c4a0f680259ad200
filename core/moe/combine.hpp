// One MoE layer's combine on one PE, in every mode.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/reduce.hpp"
#include "core/moe/common/slot_layout.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/direct/combine_receiver.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "core/moe/ring/core_ring.hpp"
#include "core/moe/stream/row_order.hpp"
#include "core/moe/stream/stream_combine.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

struct CombineTraffic {
    std::uint64_t calls = 0;
    std::uint64_t signals = 0;  // words stored in mode direct: one per PE and call
    std::uint64_t tails = 0;    // words stored by ring senders: one per batch
    std::uint64_t heads = 0;    // words stored by ring receivers: one per release
    std::uint64_t splits = 0;   // batches across a ring's end
    std::uint64_t waits = 0;    // for room, or for rows
};

// Flow control traffic of all rings that begin or end at this PE. Call it while no call runs.
inline CombineTraffic ring_traffic(const RingMemory& rings) {
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

// Memory, routing and plan of a combine on one PE, and the launches of its calls.

// A caller's own tables, for an x with another layout than build_combine_plan's (other offsets, gaps, another order
// inside a fragment). Their shapes are as in combine_plan.hpp.
struct PlanTables {
    std::span<const std::int32_t> offset_table;
    std::span<const std::int32_t> length_table;
    std::span<const std::uint32_t> slots;
};

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe. A failed
// combine leaves the ranks out of step; then every call fails, on all ranks, until reset(). All ranks that fail report
// the code and reason of the rank that failed first.
class Combine {
public:
    // `memory` and `device` must outlive the object. `local_status`: an error that the caller has found itself.
    static Result<std::unique_ptr<Combine>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                   npu::Device& device, const Status& local_status = {});

    Combine(const Combine&) = delete;
    Combine& operator=(const Combine&) = delete;
    ~Combine() = default;

    // Sets the routing of this rank's tokens, at most max_tokens. If one rank rejects it, all ranks return that error
    // and keep the previous routing. `local_status`: an error that the caller has found itself.
    Status set_routing(const RankRouting& own, const Status& local_status = {});
    // Replaces the tables of the plan until the next set_routing.
    Status set_plan(const PlanTables& tables, const Status& local_status = {});
    // x: [plan().rows, hidden], out: [tokens, hidden]. Returns when out is complete and x may be reused. A rank whose
    // call fails signals its abort to the others, whose calls then also fail instead of waiting.
    Status combine(const std::byte* x, std::byte* out);
    // The same in two parts: start() waits for no other rank. If it succeeds, finish() must be the next call.
    Status start(const std::byte* x, std::byte* out);
    Status finish();
    // Not collective. Takes over this rank's routing and the plan from a dispatch of all ranks. A later set_plan needs
    // a new set_routing.
    void adopt(CombinePlan plan, const RankRouting& own);
    // Not collective. Call it after a failure was published in failures(), by this object or by another that shares
    // them; then no rank waits for this one any more.
    void signal_abort();
    // Brings the ranks into step again after any failure, without a routing, as after create. Clears failures().
    Status reset();

    [[nodiscard]] PublishedFailures& failures() { return *failures_; }
    [[nodiscard]] const CombineConfig& config() const { return config_; }
    [[nodiscard]] const CombinePlan& plan() const { return plan_; }
    [[nodiscard]] Tokens tokens() const { return tokens_; }
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    // Call it while no call runs.
    [[nodiscard]] CombineTraffic traffic() const;
    [[nodiscard]] CopyRoute route() const { return config_.route; }
    void set_route(CopyRoute route) { config_.route = route; }
    // Checks the canaries behind both buffers. With config().audit it also checks that every slot was written as often
    // as the routing requires.
    [[nodiscard]] Status check_memory() const;

private:
    Combine(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device);

    Status allocate();
    Status check_rings() const;
    void plant_canaries();
    Status check_plan(const CombinePlan& plan) const;
    Status collect(const RankRouting& own);
    Status check_buffers(const std::byte* x, const std::byte* out) const;
    Status launch(const std::byte* x, std::byte* out);
    [[nodiscard]] CombineSend send_arguments(const std::byte* x) const;
    [[nodiscard]] CombineReceive receive_arguments(std::byte* out) const;
    [[nodiscard]] RingMemory rings() const;
    [[nodiscard]] bool streams() const { return config_.streams(); }
    [[nodiscard]] StreamCombine stream_arguments(const std::byte* x, std::byte* out) const;
    Status stream_with_host();
    [[nodiscard]] npu::LaunchConfig launch_as(const char* name) const;
    Status abort_call(const Status& cause);
    [[nodiscard]] std::optional<int> aborted_peer() const;
    void count_expected();
    [[nodiscard]] Bytes out_row() const;
    Status check_canary(std::uint64_t epoch) const;
    Status check_rings_at_rest() const;
    [[nodiscard]] std::uint64_t* arrivals() const;

    CombineConfig config_;
    SymmetricMemory& memory_;
    npu::Device& device_;
    SlotLayout layout_;
    ReduceFunction reduce_;
    // Declared in the order of allocation, so that every PE releases them in the same, reverse order.
    SymmetricBlock agreement_block_;
    SymmetricBlock failures_block_;
    SymmetricBlock routing_block_;
    SymmetricBlock region_;
    SymmetricBlock rings_;
    SymmetricBlock arrivals_;
    std::unique_ptr<RoutingExchange> routing_exchange_;
    std::unique_ptr<PublishedFailures> failures_;
    npu::Stream stream_;

    CombinePlan plan_;
    RowOrder order_;  // modes stream and chunked
    Tokens tokens_;
    std::vector<std::int32_t> experts_;
    std::vector<float> weights_;
    std::vector<std::uint64_t> expected_;  // audit: [2, slots] rows that must have been put into each slot so far
    std::vector<std::uint8_t>
        host_served_;  // per rank, 1: not mapped here, so the host sends to it; empty: all are mapped
    bool routed_ = false;
    bool collected_ = false;   // the exchange holds the routing of all ranks
    StreamCombine host_work_;  // of the current call, if the host serves some of the ranks
    std::uint64_t epoch_ = 0;
};

}  // namespace npushmem::moe
