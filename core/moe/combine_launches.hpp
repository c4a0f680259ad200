// SPDX-License-Identifier: BSD-3-Clause
// The kernel launches of a combine's calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/moe/combine_memory.hpp"
#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/private_rows.hpp"
#include "core/moe/common/rank_rows.hpp"
#include "core/moe/common/reduce.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/direct/combine_receiver.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "core/moe/stream/row_order.hpp"
#include "core/moe/stream/stream_combine.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

// The routing of a rank's tokens, and the plan by which the rank returns rows to all ranks.

// Of one call. It holds copies, so that the caller's tables may change.
struct RoutedRows {
    Tokens tokens;
    std::vector<std::int32_t> choices;  // [tokens, top_k] experts that this rank's tokens chose
    CombinePlan plan;                   // of the experts' rows
    ReceivedRows received;              // one row per rank
    RankRows rank_rows;                 // one row per rank
    std::vector<std::int32_t> experts;  // [tokens, top_k of CombineConfig::transport]
    std::vector<float> weights;         // same shape
    // For rows in place.
    std::vector<float> choice_weights;             // [tokens, top_k]
    std::vector<std::uint32_t> rows_in_fragments;  // [tokens, top_k]: from the first one of the choice's fragment on
    bool is_ordered = true;                        // `plan` orders the rows of a fragment as build_combine_plan does
};

// Keeps routing, plan and order of arrival consistent: they always belong to the same tokens of all ranks. They come
// from an exchange of all routings, from a dispatch, or from an earlier call of either.
class RoutedPlan {
public:
    // `exchange`: RoutingExchange::size symmetric bytes. `memory` and `config` must outlive the object.
    RoutedPlan(const CombineConfig& config, SymmetricMemory& memory, std::byte* exchange);

    // Not collective. Publishes this rank's routing; other ranks may collect it after the next barrier.
    void publish(const RankRouting& own) { exchange_.publish(own); }
    // Builds the plan from the routings of all ranks, for take_collected(). Call it after a barrier.
    Result<std::shared_ptr<const RoutedRows>> collect(const RankRouting& own);
    void take_collected(std::shared_ptr<const RoutedRows> rows);
    // Takes over the rows of a dispatch. No replace() is possible then, because the other ranks' routings are unknown.
    Status adopt(ReceivedRows received, const RankRouting& own);
    // Takes over what rows() returned, here or in another layer of the same shape. Likewise.
    void restore(std::shared_ptr<const RoutedRows> rows);
    // Rejects a plan for which the tables differ from the collected routings.
    [[nodiscard]] Status check(const CombinePlan& plan) const;
    // `plan` has passed check().
    void replace(CombinePlan plan);
    // Removes routing and plan.
    void clear();

    [[nodiscard]] bool is_set() const { return routed_; }
    [[nodiscard]] const std::shared_ptr<const RoutedRows>& rows() const { return rows_; }
    // Of the experts' rows.
    [[nodiscard]] const CombinePlan& plan() const { return rows_->plan; }
    // One row per rank: the received rows and their relation to the experts' rows; else null.
    [[nodiscard]] const RankRows* rank_rows() const { return per_rank() ? &rows_->rank_rows : nullptr; }
    [[nodiscard]] Tokens tokens() const { return rows_->tokens; }
    // Of the layer.
    [[nodiscard]] const CombineConfig& config() const { return config_; }
    [[nodiscard]] const ExpertPlacement& placement() const { return placement_; }

    // The rows that travel: their plan; in modes stream and chunked their order of arrival; and the routing of this
    // rank's tokens, [tokens, top_k of CombineConfig::transport].
    [[nodiscard]] const CombinePlan& sent() const { return per_rank() ? rows_->received.plan : rows_->plan; }
    [[nodiscard]] const RowOrder& order() const { return order_; }
    [[nodiscard]] const std::vector<std::int32_t>& experts() const { return rows_->experts; }
    [[nodiscard]] const std::vector<float>& weights() const { return rows_->weights; }

private:
    [[nodiscard]] bool per_rank() const { return config_.rows_per == RowsPer::rank; }
    Result<std::shared_ptr<const RoutedRows>> rows_of(ReceivedRows received, const RankRouting& own) const;
    void number_rows(RoutedRows& rows, const RankRouting& own) const;
    void relate(RoutedRows& rows) const;
    void set(std::shared_ptr<const RoutedRows> rows);

    const CombineConfig& config_;
    const CombineConfig transport_;
    int my_pe_;
    ExpertPlacement placement_;
    RoutingExchange exchange_;
    std::shared_ptr<const RoutedRows> rows_ = std::make_shared<RoutedRows>();
    RowOrder order_;
    bool routed_ = false;
    bool collected_ = false;  // the exchange holds the routing of all ranks
};

// x and out are as in Combine::combine. `epoch` counts the calls from 1.
struct CombineCall {
    const std::byte* x = nullptr;
    std::byte* out = nullptr;
    std::uint64_t epoch = 0;
    bool weighted = true;  // false: all weights are 1
};

// Runs calls on one stream of the device, and serves the ranks whose memory is not mapped here from the host. Launches
// read the routing and write the memory until finish() or drain() returns.
class CombineLaunches {
public:
    // The arguments must outlive the object. `config`: CombineConfig::transport.
    CombineLaunches(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device,
                    const CombineMemory& blocks, const RoutedPlan& routing);

    // Rejects buffers that the call cannot use.
    [[nodiscard]] Status check_buffers(const CombineCall& call) const;
    // Informs the ranks from which this one can read rows in place. Call it between two barriers after the allocation
    // of the memory.
    void publish_readable_ranks();
    // Waits for no other rank.
    Status start(const CombineCall& call);
    // Waits until the started call is complete.
    Status finish();
    // Waits until no launch runs. The stream does not run the launches behind a failed one.
    void drain() { (void)stream_.synchronize(); }
    // Best effort: the other ranks also have their own timeouts.
    void signal_abort(std::uint64_t epoch);
    // True if the last call left the rows in place.
    [[nodiscard]] bool left_in_place() const { return left_in_place_; }
    // A rank whose abort has been received.
    [[nodiscard]] std::optional<int> aborted_peer() const;

private:
    [[nodiscard]] npu::LaunchConfig launch_as(const char* name) const;
    [[nodiscard]] CombineSend send_arguments(const CombineCall& call) const;
    Result<ComputedRows> computed_rows(bool weighted);
    Status prepare_rows(CombineSend& send, bool weighted);
    Status send_directly(const CombineSend& send);
    [[nodiscard]] bool can_offer(const std::byte* x);
    [[nodiscard]] bool is_beside(const std::byte* symmetric, const std::byte* other) const;
    [[nodiscard]] const std::byte* offers_of(const std::byte* x);
    [[nodiscard]] ReadInPlace read_in_place(bool weighted) const;
    [[nodiscard]] CombineReceive receive_arguments(const CombineCall& call) const;
    [[nodiscard]] StreamCombine stream_arguments(const CombineSend& send, const CombineCall& call) const;
    Status stream_with_host();

    const CombineConfig& config_;
    SymmetricMemory& memory_;
    npu::Device& device_;
    const CombineMemory& blocks_;
    const RoutedPlan& routing_;
    Reduction reduction_;
    std::vector<float> ones_;                // weights of a call without: as many as it needs of choices and of rows
    PrivateRows computed_;                   // rows to send
    PrivateRows floats_;                     // of sums that are quantized, a row for each core
    std::vector<std::byte> offers_;          // OfferInPlace::offers
    std::optional<bool> all_can_read_;       // true if every rank can read rows of this one
    std::vector<std::uint8_t> host_served_;  // per rank, 1: not mapped here, so the host sends to it; empty: all are
                                             // mapped
    bool left_in_place_ = false;             // rows of the last call
    StreamCombine host_work_;                // of the current call, if the host serves some of the ranks
    npu::Stream stream_;
};

}  // namespace npushmem::moe
