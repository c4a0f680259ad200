// One MoE layer's combine on one PE, in every mode: memory, routing, plan, and the launches of a call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/moe/combine_config.hpp"
#include "core/moe/combine_plan.hpp"
#include "core/moe/combine_receiver.hpp"
#include "core/moe/combine_sender.hpp"
#include "core/moe/combine_traffic.hpp"
#include "core/moe/published_failures.hpp"
#include "core/moe/reduce.hpp"
#include "core/moe/routing_exchange.hpp"
#include "core/moe/slot_layout.hpp"
#include "core/moe/stream/row_order.hpp"
#include "core/moe/stream/stream_combine.hpp"
#include "core/moe/symmetric_memory.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

// Tables of the caller's own, for an x that is laid out differently from build_combine_plan's (other offsets, gaps,
// other order inside a fragment). The shapes are those of combine_plan.hpp.
struct PlanTables {
    std::span<const std::int32_t> offset_table;
    std::span<const std::int32_t> length_table;
    std::span<const std::uint32_t> slots;
};

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe. A failed
// combine leaves the ranks out of step; from then on the object says so, on all ranks, until reset(). All ranks
// that fail report the code and reason of the one that failed first.
class Combine {
public:
    // `memory` and `device` must outlive the object. `local_status`: what the caller itself found wrong.
    static Result<std::unique_ptr<Combine>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                   npu::Device& device, const Status& local_status = {});

    Combine(const Combine&) = delete;
    Combine& operator=(const Combine&) = delete;
    ~Combine() = default;

    // This rank's tokens, at most max_tokens. A refusal by one rank is returned by all, and the routing before stays.
    // `local_status`: what the caller itself found wrong.
    Status set_routing(const RankRouting& own, const Status& local_status = {});
    // Replaces the tables of the plan until the next set_routing; collective like it.
    Status set_plan(const PlanTables& tables, const Status& local_status = {});
    // x: [plan().rows, hidden], out: [tokens, hidden]. Returns when out is complete and x may be reused. A rank whose
    // call is refused or fails tells the others, whose calls then fail as well instead of waiting.
    Status combine(const std::byte* x, std::byte* out);
    // The same in two parts: start() waits for no other rank; finish(), if it went well, must be the next call.
    Status start(const std::byte* x, std::byte* out);
    Status finish();
    // Not collective by itself: the routing of this rank and the plan, as a dispatch of all ranks has made them.
    // set_plan needs a set_routing again.
    void adopt(CombinePlan plan, const RankRouting& own);
    // Not collective: after a failure that failures() holds, here or in what shares them. Nobody waits for this rank
    // any more.
    void signal_abort();
    // The ranks are in step again, whatever has failed; without a routing, as after create. Clears failures().
    Status reset();

    [[nodiscard]] PublishedFailures& failures() { return *failures_; }
    [[nodiscard]] const CombineConfig& config() const { return config_; }
    [[nodiscard]] const CombinePlan& plan() const { return plan_; }
    [[nodiscard]] Tokens tokens() const { return tokens_; }
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    // While no call is under way.
    [[nodiscard]] CombineTraffic traffic() const;
    [[nodiscard]] CopyRoute route() const { return config_.route; }
    void set_route(CopyRoute route) { config_.route = route; }
    // The canaries behind both buffers, and with config().audit that every slot was written as often as the routing
    // says.
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
    // Declared in the order of allocation, so that they are released in reverse on every PE alike.
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
    bool collected_ = false;   // the exchange has the routing of all ranks
    StreamCombine host_work_;  // of the call under way, where the host serves some of the ranks
    std::uint64_t epoch_ = 0;
};

}  // namespace npushmem::moe
