// SPDX-License-Identifier: BSD-3-Clause
// The members of a team by host, for its collectives.
#pragma once

#include <memory>
#include <vector>

#include "core/coll/host_grid.hpp"
#include "core/coll/host_sync.hpp"
#include "core/map/host_layout.hpp"
#include "core/team/members.hpp"

namespace npushmem {

// Returns the indices of the members on each host, in ascending order; the hosts in the order of their first members.
std::vector<std::vector<int>> members_by_host(const Members& members, const HostLayout& layout);

// Returns null unless the members are on several hosts, with the same number of members on each.
std::unique_ptr<const coll::HostGrid> host_grid_of(const std::vector<std::vector<int>>& by_host, int own_index);

// Signals over the transports, and stores to the memory of a host.
class TeamHostSignals final : public coll::HostSignals {
public:
    // All outlive this.
    TeamHostSignals(const TeamResources& resources, const MemberMemory& memory, const Waiter& waiter)
        : resources_(resources), memory_(memory), waiter_(waiter) {}

    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes, std::uint64_t signal_at,
               std::uint64_t signal) override;
    Result<std::uint64_t> wait(std::uint64_t signal_at, std::uint64_t least, int sender) override;
    Status announce(std::uint64_t counter_at, std::uint64_t step, const coll::Outcome& outcome) override;
    Result<coll::Outcome> wait_for(int member, std::uint64_t counter_at, std::uint64_t step) override;
    int dead_pe() override;

private:
    [[nodiscard]] WaitFor wait_description() const;

    const TeamResources& resources_;
    const MemberMemory& memory_;
    const Waiter& waiter_;
    Status event_;  // of the transports
};

}  // namespace npushmem
