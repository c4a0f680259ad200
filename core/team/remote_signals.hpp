// The barrier's fabric when some members are behind a transport: signals are atomics through RemoteAccess, waits look
// at the own memory while transports progress.
#pragma once

#include <functional>
#include <utility>

#include "core/base/parse.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "core/coll/barrier/state.hpp"
#include "core/ops/remote_access.hpp"

namespace npushmem {

// Where a PE's slice of the symmetric memory is mapped; null where it is not.
using SliceLookup = std::function<std::byte*(int pe)>;

class RemoteSignals final : public barrier::SignalFabric {
public:
    // `own`: this PE's state; `offset`: of every member's state in its slice.
    RemoteSignals(SliceLookup slice_of, RemoteAccess& remote, std::byte* own, std::uint64_t offset, PeRange members,
                  int my_pe, const Waiter& waiter, Duration timeout)
        : slice_of_(std::move(slice_of)),
          remote_(remote),
          own_(own),
          offset_(offset),
          members_(members),
          my_pe_(my_pe),
          waiter_(waiter),
          timeout_(timeout) {}

    Code signal(int member, int slot, std::uint64_t value) override;
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) override;

    Code wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) override;
    Code complete() override;
    [[nodiscard]] barrier::FabricFailure failure() const override { return failure_; }

    // Why an operation failed, when it was not a wait. Stays: a barrier that has failed is not used again.
    [[nodiscard]] const Status& cause() const { return cause_; }

private:
    // The member's slot, if the CPU sees it.
    [[nodiscard]] std::byte* mapped_state(int pe) const {
        std::byte* const slice = slice_of_(pe);
        return slice != nullptr ? slice + offset_ : nullptr;
    }
    // As mapped_state, and the own one in any case, for what is not an atomic of several writers.
    [[nodiscard]] std::byte* visible_state(int pe) const { return pe == my_pe_ ? own_ : mapped_state(pe); }
    Code update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before);
    Code load_slot(int pe, int slot, std::uint64_t& value);
    Code record_failure(Status status);
    bool progress_ok() { return record_failure(remote_.progress()) == Code::ok; }

    SliceLookup slice_of_;
    RemoteAccess& remote_;
    std::byte* own_;
    std::uint64_t offset_;
    PeRange members_;
    int my_pe_;
    const Waiter& waiter_;
    Duration timeout_;
    barrier::FabricFailure failure_;
    Status cause_;
};

}  // namespace npushmem
