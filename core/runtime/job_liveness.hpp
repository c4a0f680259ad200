// Who will not come any more: PEs whose process has died, PEs of this host that have finalized, and PEs of
// other hosts that have sent their departures.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "core/base/process_liveness.hpp"
#include "core/memory/control_block.hpp"

namespace npushmem {

class JobLiveness final : public Liveness {
public:
    // A PE's control block, null for a PE of another host.
    using ControlBlockLookup = std::function<ControlBlock*(int pe)>;

    explicit JobLiveness(std::vector<ProcessId> processes) : processes_(std::move(processes)) {}

    // From here on finalized PEs are found too. `any_departed`: whether there is one to be found. `barriers`: the
    // number of barriers that this PE has left. Before the first wait.
    void watch(int my_pe, ControlBlockLookup control, std::function<bool()> any_departed,
               std::function<std::uint64_t()> barriers);

    // A transport has lost its way to this PE: whoever waits for it waits in vain. Any thread.
    void mark_lost(int pe);

    // A PE that went because of another one is not blamed for it: the answer is the one that went first, as far as the
    // PEs of this host have noted it, which may be a PE outside `pes`.
    std::optional<int> find_dead(const PeRange& pes) override;

private:
    [[nodiscard]] std::optional<int> lost_among(const PeRange& pes);
    [[nodiscard]] std::optional<int> lost_or_dead_among(const PeRange& pes);
    [[nodiscard]] bool has_finalized(int pe) const;
    [[nodiscard]] bool has_sent_departure(int pe) const;
    [[nodiscard]] int cause_of(int gone) const;

    ProcessLiveness processes_;
    int my_pe_ = -1;
    ControlBlockLookup control_;
    std::function<bool()> any_departed_;
    std::function<std::uint64_t()> barriers_;
    std::mutex lost_lock_;
    std::set<int> lost_;  // under lost_lock_
};

}  // namespace npushmem
