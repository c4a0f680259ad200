// Counts a team's meetings, and times some of them: how long they take, and which PE of this host came last.
//
// Two readings of the clock cost a third of a short barrier, so one meeting in `every` is timed, the same one by all.
// After it one of the PEs, each in its turn, reads when the others came. Clocks of different hosts are not compared.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/wait_os.hpp"
#include "core/memory/meeting_counts.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class MeetingStatistics {
public:
    // `counts`: of the members on this host, in an order that is the same on all of them; `own`: which of them is the
    // caller's. They must be zero before the first meeting and outlive this, as must `os`.
    MeetingStatistics(std::vector<MeetingCounts*> counts, std::size_t own, std::uint64_t every, WaitOs& os)
        : counts_(std::move(counts)), own_(own), every_(every), os_(os) {}

    // Runs `meet` as the meeting of this number (1 for the first), the same on all members.
    template <class Meet>
    Code around(std::uint64_t meeting, Meet&& meet) {
        raise(mine().meetings, 1);
        if (meeting % every_ != 0) return meet();
        const std::int64_t came = enter(meeting / every_);
        const Code code = meet();
        if (code == Code::ok) leave(meeting / every_, came);
        return code;
    }

private:
    [[nodiscard]] MeetingCounts& mine() const { return *counts_[own_]; }
    // For counters with one writer.
    static void raise(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
        counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    std::int64_t enter(std::uint64_t timed);
    void leave(std::uint64_t timed, std::int64_t came);
    void find_last(std::uint64_t timed) const;

    std::vector<MeetingCounts*> counts_;
    std::size_t own_;
    std::uint64_t every_;
    WaitOs& os_;
};

}  // namespace npushmem
