// SPDX-License-Identifier: BSD-3-Clause
// The kernel launches of a dispatch's calls, and the private memory into which the kernels write their results.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"
#include "core/moe/dispatch/row_fan_out.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

// The dispatch for ranks whose memory is not mapped here: the host puts records and rows through the transport. Both
// are complete after memory.quiet(). Call quiet before this rank waits for others.

// Publishes the counts to every rank that work.host_served marks. Call it after moe_dispatch_publish_counts.
void publish_counts_remotely(SymmetricMemory& memory, const DispatchWork& work);

// Puts the rows to these ranks. Call it after moe_dispatch_tables, if the call is accepted.
void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work);

// With fixed slots: puts the rows, if this rank accepts the call, and then its record.
void send_fixed_remotely(SymmetricMemory& memory, const DispatchWork& work);

void signal_dispatch_abort_remotely(SymmetricMemory& memory, const DispatchWork& work);

// Where the rows of this rank go, as in DispatchTables. A later call may send rows to the same places.
struct RowPlaces {
    std::vector<std::uint32_t> order;
    std::vector<std::uint64_t> begins;
    std::vector<std::uint64_t> starts;
    std::vector<std::uint64_t> totals;
    std::vector<std::uint8_t> through_relays;  // see rows_through_relays()
    std::vector<RelayedRow> relayed;           // that this rank copies
};

// Owns the memory behind DispatchTables, and explains a call that was not accepted. Valid for the last call whose
// launches have ended.
class DispatchResults {
public:
    // `layout` and `placement` must outlive the object. `choices`: maximum of one call.
    DispatchResults(const DispatchLayout& layout, const ExpertPlacement& placement, Rows choices);

    // Sets this rank's record for the next call; an error rejects the call on all ranks. `cached`: the routing of a
    // cached call.
    void set_record(const Status& own_status, DispatchKind kind = DispatchKind::routes, const RoutingId& cached = {});
    // Sets the tables of `work`. `plan`: its tables are results too. A rejected call keeps the current places.
    void use_next(DispatchWork& work, CombinePlan& plan, std::vector<std::uint8_t> through_relays);
    void use_current(DispatchWork& work, CombinePlan& plan) { use(current_, work, plan); }
    // Makes the places of the call that was accepted the current ones.
    void accept() { std::swap(current_, next_); }
    void set_relayed(std::vector<RelayedRow> rows) { current_.relayed = std::move(rows); }
    [[nodiscard]] RowPlaces places() const;
    void set_places(const RowPlaces& places);
    [[nodiscard]] const RowPlaces& current() const { return current_; }

    [[nodiscard]] bool accepted() const { return accepted_ != 0; }
    // Rows of x of the rank.
    [[nodiscard]] Rows rows_of(std::int32_t rank) const {
        return Rows{current_.totals[static_cast<std::size_t>(rank)]};
    }
    // The error of a call that was not accepted. `own`: the status of this rank, `self`.
    [[nodiscard]] Status refusal(const DispatchWork& work, std::int32_t self, const Status& own) const;

private:
    void use(RowPlaces& places, DispatchWork& work, CombinePlan& plan);
    [[nodiscard]] Status capacity_error(const DispatchWork& work, std::int32_t holder) const;
    [[nodiscard]] Status other_layout(const DispatchWork& work, std::int32_t rank, std::int32_t self) const;

    const DispatchLayout& layout_;
    const ExpertPlacement& placement_;
    std::vector<std::byte> record_;
    RowPlaces current_;  // of the current routing, if it comes from a dispatch
    RowPlaces next_;     // of the call in progress
    std::uint64_t accepted_ = 0;
};

// Runs calls on one stream of the device, and serves the ranks whose memory is not mapped here from the host.
class DispatchLaunches {
public:
    // `memory` and `device` must outlive the object. `region`: the symmetric memory of the dispatch.
    DispatchLaunches(SymmetricMemory& memory, npu::Device& device, const std::byte* region);

    // Per rank, 1: not mapped here, so the host sends to it; null: all are mapped.
    [[nodiscard]] const std::uint8_t* host_served() const {
        return host_served_.empty() ? nullptr : host_served_.data();
    }
    // Launches all steps that wait for no other rank. Between the steps the host serves the ranks whose memory is not
    // mapped. `work` must stay unchanged until finish() or drain() returns.
    Status start(const DispatchWork& work);
    // Waits until the started call is complete.
    Status finish(const DispatchWork& work, const DispatchResults& results);
    // Waits until no launch runs. The stream does not run the launches behind a failed one.
    void drain() { (void)stream_.synchronize(); }
    // Best effort: the other ranks also have their own timeouts.
    void signal_abort(const DispatchWork& work);

private:
    Status start_fixed(const DispatchWork& work);
    Status launch(const char* name, void (*kernel)(npu::Core&, const DispatchWork&), const DispatchWork& work);

    SymmetricMemory& memory_;
    npu::Device& device_;
    std::vector<std::uint8_t> host_served_;  // empty: all ranks are mapped
    npu::Stream stream_;
};

}  // namespace npushmem::moe
