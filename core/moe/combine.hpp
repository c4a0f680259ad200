// SPDX-License-Identifier: BSD-3-Clause
// One MoE layer's combine on one PE, in every mode.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/moe/combine_launches.hpp"
#include "core/moe/combine_memory.hpp"
#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem::moe {

struct CombineTraffic {
    std::uint64_t calls = 0;
    std::uint64_t signals = 0;  // words stored in mode direct to announce rows: one per PE and call
    std::uint64_t tails = 0;    // words stored by ring senders: one per batch
    std::uint64_t heads = 0;    // words stored by ring receivers: one per release
    std::uint64_t splits = 0;   // batches across a ring's end
    std::uint64_t waits = 0;    // for room, or for rows
};

// A caller's own tables, for an x with another layout than build_combine_plan's (other offsets, gaps, another order
// inside a fragment). Their shapes are as in combine_plan.hpp.
struct PlanTables {
    std::span<const std::int32_t> offset_table;
    std::span<const std::int32_t> length_table;
    std::span<const std::uint32_t> slots;
};

// The collective protocol of a combine: set-up, agreement on the routing, calls, and failures. CombineMemory holds the
// rows, RoutedPlan the routing, and CombineLaunches runs the kernels.
//
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

    // Sets the routing of this rank's tokens, at most max_tokens. If one rank rejects it, all ranks return that error
    // and keep the previous routing. `local_status`: an error that the caller has found itself.
    Status set_routing(const RankRouting& own, const Status& local_status = {});
    // Replaces the tables of the plan until the next set_routing.
    Status set_plan(const PlanTables& tables, const Status& local_status = {});
    // x: [plan().rows, hidden], out: [tokens, hidden]. Returns when out is complete and x may be reused. A rank whose
    // call fails signals its abort to the others, whose calls then also fail instead of waiting.
    Status combine(const std::byte* x, std::byte* out);
    // The same in two parts: start() waits for no other rank. If it succeeds, finish() must be the next call.
    // `local_status`: an error that the caller has found itself. `weighted`: false: all weights are 1.
    Status start(const std::byte* x, std::byte* out, const Status& local_status = {}, bool weighted = true);
    Status finish();
    // Makes the routing of an earlier call the current one again. All ranks give that of the same call.
    // `dispatched`: a dispatch made it.
    Status restore(std::shared_ptr<const RoutedRows> rows, const RoutingId& id, bool dispatched,
                   const Status& local_status);
    // Not collective. Takes over this rank's routing and the rows from a dispatch of all ranks. A later set_plan needs
    // a new set_routing.
    Status adopt(ReceivedRows received, const RankRouting& own);
    // Not collective. Call it after a failure was published in failures(), by this object or by another that shares
    // them; then no rank waits for this one any more.
    void signal_abort() { launches_.signal_abort(epoch_); }
    // Brings the ranks into step again after any failure, without a routing, as after create. Clears failures().
    Status reset();

    [[nodiscard]] PublishedFailures& failures() { return failures_; }
    [[nodiscard]] const CombineConfig& config() const { return config_; }
    [[nodiscard]] const RoutedPlan& routing() const { return routing_; }
    // Names the current routing.
    [[nodiscard]] const RoutingId& routing_id() const { return routing_id_; }
    [[nodiscard]] const CombinePlan& plan() const { return routing_.plan(); }
    [[nodiscard]] const RankRows* rank_rows() const { return routing_.rank_rows(); }
    // The rows that a dispatch brings, one for each row that returns.
    [[nodiscard]] Rows received() const { return routing_.sent().rows; }
    [[nodiscard]] std::int32_t ranks() const { return memory_.n_pes(); }
    [[nodiscard]] Tokens tokens() const { return routing_.tokens(); }
    // True if this rank's rows of the last call stayed in place, where the ranks of their tokens have read them.
    [[nodiscard]] bool left_in_place() const { return launches_.left_in_place(); }
    // Call it while no call runs.
    [[nodiscard]] CombineTraffic traffic() const;
    // Checks the canaries behind both buffers. With config().audit it also checks that every slot was written as often
    // as the routing requires.
    [[nodiscard]] Status check_memory() const { return slots_.check(epoch_); }

private:
    struct Blocks {
        SymmetricBlock agreement;
        SymmetricBlock failures;
        SymmetricBlock routing;
        CombineMemory slots;
    };

    Combine(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device, Blocks blocks);

    Status abort_call(const Status& cause);
    void draw_origin();
    Status read_origin();
    void number_routing() { routing_id_ = {origin_, ++routings_}; }

    const CombineConfig config_;
    const CombineConfig transport_;
    SymmetricMemory& memory_;
    // Declared in the order of allocation, so that every PE releases them in the same, reverse order.
    SymmetricBlock agreement_block_;
    SymmetricBlock failures_block_;
    SymmetricBlock routing_block_;
    CombineMemory slots_;
    PublishedFailures failures_;
    RoutedPlan routing_;
    // Refers to the members above, and waits for its launches when it is destroyed, before they are.
    CombineLaunches launches_;
    std::uint64_t epoch_ = 0;
    std::uint64_t origin_ = 0;    // rank 0 draws it
    std::uint64_t routings_ = 0;  // since create or reset; the same on all ranks
    RoutingId routing_id_;
};

}  // namespace npushmem::moe
