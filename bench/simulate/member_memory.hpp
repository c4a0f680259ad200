// SPDX-License-Identifier: BSD-3-Clause
// The memory and the place of a simulated member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bench/simulate/simulation.hpp"
#include "core/coll/group.hpp"
#include "core/coll/leader_exchange.hpp"

namespace npushmem::simulate {

// Empty if the nodes have different numbers of members.
inline std::optional<coll::HostGrid> grid_of(const Team& team, int member) {
    if (team.members % team.per_node != 0) return std::nullopt;
    std::vector<int> by_host(static_cast<std::size_t>(team.members));
    std::iota(by_host.begin(), by_host.end(), 0);
    return coll::HostGrid{
        team.nodes(), team.per_node, {member / team.per_node, member % team.per_node}, std::move(by_host)};
}

// The arrays hold no data: all of them, of all members, are one buffer. All members are alike: a read of another one's
// workspace finds the own content.
class MemberMemory {
public:
    static constexpr std::uint64_t source_at = 0;
    static constexpr std::uint64_t dest_at = 1ULL << 40;
    static constexpr std::uint64_t workspace_at = 1ULL << 50;
    static constexpr std::uint64_t leader_exchange_at = 1ULL << 51;

    explicit MemberMemory(std::vector<std::byte>& arrays) : arrays_(arrays) {}

    [[nodiscard]] std::byte* at(std::uint64_t offset) {
        if (offset < workspace_at) return arrays_.data();
        if (offset < leader_exchange_at) return workspace_.data() + (offset - workspace_at);
        if (exchange_.empty()) exchange_.resize(coll::LeaderExchange::bytes);
        return exchange_.data() + (offset - leader_exchange_at);
    }
    void read(std::uint64_t offset, void* dest, std::uint64_t bytes) {
        if (offset >= workspace_at) std::memcpy(dest, at(offset), bytes);
    }

private:
    std::vector<std::byte>& arrays_;
    std::vector<std::byte> workspace_ = std::vector<std::byte>(coll::Workspace::bytes);
    std::vector<std::byte> exchange_;
};

}  // namespace npushmem::simulate
