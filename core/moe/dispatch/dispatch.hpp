// SPDX-License-Identifier: BSD-3-Clause
// One MoE layer's dispatch on one PE: its memory, and one launch per call. It sends every token's row to the ranks of
// its experts and also makes the plan with which the combine returns the experts' rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/private_rows.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/rank_rows.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/dispatch/dispatch_launches.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem::moe {

// The collective protocol of a dispatch: calls, their agreement, and failures. DispatchLaunches runs the kernels, and
// DispatchResults holds what they compute.
//
// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe.
//
// If any rank rejects a call, all ranks reject it before any row moves, with the code of the lowest rank that rejects;
// the next call may follow at once. A call that fails (for example because a rank does not call) leaves the ranks out
// of step; every later call then fails until reset().
class Dispatch {
public:
    // Not collective. The memory in which a rank quantizes its tokens; empty if it does not.
    static Result<PrivateRows> memory_for_quantized(const CombineConfig& config);
    // All ranks have agreed on `config`, which has a capacity, and have the memory for quantized rows. The other
    // arguments must outlive the object.
    static Result<std::unique_ptr<Dispatch>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                    npu::Device& device, PublishedFailures& failures,
                                                    PrivateRows quantized);

    Dispatch(const Dispatch&) = delete;
    Dispatch& operator=(const Dispatch&) = delete;

    // in: [tokens of `own`, hidden] of the input type or narrow rows (CombineConfig); it may be reused on return.
    // `local_status`: an error that the caller has found itself. The call overwrites x(), unless it is rejected.
    Status run(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    // The same in two parts: start() waits for no other rank. If it succeeds, finish() must be the next call. The
    // memory of `in` and `own` must stay unchanged until finish() returns.
    Status start(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    Status finish();
    // The same by the current places, those of the last accepted call or of set_places(). in: [tokens, hidden];
    // `routing`: names the places. `tags`: travel in the place of the slots, in the order of places(); or empty.
    Status start_cached(const std::byte* in, std::size_t tokens, DispatchKind kind, const RoutingId& routing,
                        std::span<const std::uint32_t> tags, const Status& local_status);
    // Of a call in progress or the last one.
    [[nodiscard]] bool is_cached() const { return work_.cached; }
    // The places of the rows that this rank sent in the last accepted call. set_places: of a layout of this rank that
    // fits the configuration.
    [[nodiscard]] const RowPlaces& current_places() const { return results_.current(); }
    [[nodiscard]] RowPlaces places() const { return results_.places(); }
    void set_places(const RowPlaces& places) { results_.set_places(places); }
    // Of a call of kind gradients that has finished: for each row that this rank sent, in the order of places(), `each`
    // floats that its receiver has written with reply().
    Status fetch_replies(std::vector<float>& replies, std::size_t each);
    // For `each` floats for each row of x, whose receiver this rank is; `each` is 1 or the choices of a row.
    [[nodiscard]] float* reply(std::size_t each) const;
    // Not collective. Call it after a failure was published; then no rank waits for this one any more.
    void signal_abort();
    // Brings the ranks into step again, as after create. The caller then clears the failures.
    Status reset();

    // The rows of this PE's experts, in the order of the plan, of the last accepted call. Valid until the next call.
    [[nodiscard]] std::byte* x() const { return region_.data() + layout_.x(accepted_).value(); }
    // What arrived in the place of the slots in the last cached call, for each row of x.
    [[nodiscard]] const std::uint32_t* tags() const { return slots(epoch_); }
    // The memory that rows arrive in.
    [[nodiscard]] Extent received_rows() const {
        return {"the rows of the dispatch", region_.data() + layout_.x().value(), layout_.all_x()};
    }
    // Moves the rows out; call it once per accepted call.
    [[nodiscard]] ReceivedRows take_rows() { return std::move(rows_); }

private:
    Dispatch(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device, PublishedFailures& failures,
             const DispatchLayout& layout, SymmetricBlock region, PrivateRows quantized);

    Status check_routing(const RankRouting& own);
    Status check(const std::byte* in, std::size_t tokens) const;
    Status launch(const DispatchWork& work);
    void clear_slots(std::uint64_t epoch);
    // Returns rows_through_relays().
    std::vector<std::uint8_t> prepare_rows(const RankRouting& own);
    const std::byte* rows_to_send(const std::byte* in, std::size_t tokens);
    [[nodiscard]] DispatchWork work_of(const std::byte* in);
    void adopt();
    [[nodiscard]] std::uint32_t* slots(std::uint64_t epoch) const;
    Status audit() const;
    [[nodiscard]] Status check_canary() const;
    // A word of this rank at the others, which holds an epoch.
    using Word = Bytes (DispatchLayout::*)(std::int32_t) const;
    Status signal(std::span<const std::int32_t> ranks, Word word);
    Status await(std::span<const std::int32_t> ranks, Word word, const char* what);
    Status signal_and_await(std::span<const std::int32_t> ranks, Word word, const char* what);
    Status copy_from_relays();
    Status fetch_all(std::vector<float>& replies, std::size_t each);
    Status abort_call(const Status& cause);
    [[nodiscard]] std::optional<int> aborted_peer() const;

    const CombineConfig config_;
    const CombineConfig transport_;
    SymmetricMemory& memory_;
    PublishedFailures& failures_;
    const ExpertPlacement placement_;  // of transport_
    const DispatchLayout layout_;
    SymmetricBlock region_;
    DispatchResults results_;
    decltype(NarrowFunctions::quantize) quantize_;
    PrivateRows quantized_;  // this rank's tokens in the dispatch type; empty if it does not quantize them
    ReceivedRows rows_;
    std::vector<Choice> row_choices_;  // one row per rank: of the rows that this rank sends
    std::vector<std::int64_t> rows_to_expert_;
    std::vector<std::int32_t> others_;  // all ranks but this one
    RowFanOut fan_out_;
    DispatchWork work_;  // of the current call
    Status own_status_;  // of this rank in the current call
    std::uint64_t epoch_ = 0;
    std::uint64_t accepted_ = 0;  // the last epoch that was
    // Waits for its launches when it is destroyed, before the memory that they use is.
    DispatchLaunches launches_;
};

}  // namespace npushmem::moe
