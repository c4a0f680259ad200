// SPDX-License-Identifier: BSD-3-Clause
// The members of a team and where this PE sees their memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/awaited_bytes.hpp"
#include "core/base/liveness.hpp"
#include "core/base/parse.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/map/fast_map.hpp"
#include "core/map/host_layout.hpp"
#include "core/remote/remote_access.hpp"

namespace npushmem::coll {
class CollectivesLibrary;
}

namespace npushmem {

// The members of a team, by index: PEs at equal distances, which need no memory, or a list of distinct PEs, which
// copies share. Immutable.
class Members {
public:
    Members() = default;
    // PEs at equal distances; the range has no table.
    Members(const PeRange& strided) : range_(strided) {}  // implicit: most teams are such a range
    // Distinct PEs, at least one. PEs at equal distances become a range without a table.
    static Members listed(std::vector<int> pes);

    // For waits and iteration; valid while this object or a copy lives.
    [[nodiscard]] const PeRange& range() const { return range_; }
    [[nodiscard]] int count() const { return range_.count; }
    [[nodiscard]] int at(int index) const { return range_.at(index); }
    // Returns the index of a world PE; -1 when it is not a member.
    [[nodiscard]] int index_of(int world_pe) const;
    // Returns the members with index `start`, `start` + `stride`, ..., `count` of them.
    [[nodiscard]] Members every(int start, int stride, int count) const;
    // Returns equal values for the same PEs in the same order; 0 for PEs at equal distances.
    [[nodiscard]] std::uint32_t list_hash() const;
    // "PEs 1 to 7, every 2", "PEs 5, 0, 3"
    [[nodiscard]] std::string text() const;

private:
    struct List {
        std::vector<int> pes;
        std::vector<std::pair<int, int>> places;  // a PE and its index, by PE
    };

    PeRange range_;
    std::shared_ptr<const List> list_;  // range_.table points into it; null without a table
};

// Returns where a PE's slice is mapped; null where it is not.
using SliceLookup = std::function<std::byte*(int pe)>;

// The resources of all teams; all references outlive the teams.
struct TeamResources {
    int my_pe;
    int npes;
    double pes_per_core;
    const FastMap& map;
    SliceLookup slice_of;  // for PEs outside the fast map
    std::byte* own_slice;
    std::atomic<std::uint32_t>& host_sleepers;  // HostMemory::sleepers
    RemoteAccess& remote;
    const Waiter& waiter;
    Duration timeout;
    std::string algorithm;  // NPUSHMEM_BARRIER_ALGO
    const barrier::Tuning& tuning;
    const HostLayout& layout;
    std::uint64_t sample_every = 0;  // barriers; 0: no statistics
    WaitOs* os = nullptr;            // for statistics
    // Receives a PE that the transports cannot reach any more; may be empty.
    std::function<void(int pe)> report_lost{};
    // Returns the PEs whose death ends a wait for unknown PEs; empty: such waits watch none.
    std::function<PeRange()> awaited_pes{};
    Liveness* liveness = nullptr;                     // null: no PE is ever known to be dead
    coll::CollectivesLibrary* collectives = nullptr;  // of another library; null: none
    bool hosts_map = false;                           // every PE maps all PEs of its host; equal on all PEs
};

// Whether the operation failed because its PE is gone. A PE that the transport cannot reach counts as dead: PEs of
// other hosts are only seen through it.
inline bool is_lost(const Status& done) { return done.code() == Code::peer_dead || done.code() == Code::unreachable; }

// Returns the PEs of a team for complete_members(); empty if they are all PEs of the job.
std::vector<int> listed_unless_all(const PeRange& members, int npes);

// Completes this PE's operations to the members, so that the death of another PE does not fail the team's calls.
Status complete_members(RemoteAccess& remote, const std::vector<int>& listed);

// Returns where a PE's slice is mapped; null where it is not. This PE's own slice is always mapped.
std::byte* slice_of(const TeamResources& resources, int pe);

// Lets the writers of a word of this PE's slice wake its wait for it.
AwaitedBytesParking parking_for_word(const TeamResources& resources, std::uint64_t offset);

// Returns whether this PE maps all of them.
bool maps_all(const TeamResources& resources, const PeRange& pes);

// Locates the memory of a team's members, with one multiplication if they are at equal distances. Immutable; the own
// PE is a member.
class MemberMemory {
public:
    // `all_mapped`: every member maps every member.
    MemberMemory(const TeamResources& resources, Members members, bool all_mapped);
    MemberMemory(const MemberMemory&) = delete;
    MemberMemory& operator=(const MemberMemory&) = delete;

    [[nodiscard]] const Members& members() const { return members_; }
    [[nodiscard]] int own_index() const { return own_index_; }
    [[nodiscard]] bool all_mapped() const { return all_mapped_; }
    // Returns whether all are mapped, at equal distances.
    [[nodiscard]] bool is_strided() const { return is_strided_; }
    // Returns where `offset` of a member's slice is mapped; null where it is not. The own one is always mapped.
    [[nodiscard]] std::byte* address(int member, std::uint64_t offset) const {
        if (member == own_index_) return own_slice_ + offset;
        if (is_strided_) [[likely]]
            return first_slice_ + member * distance_ + offset;
        std::byte* const slice = slices_[static_cast<std::size_t>(member)];
        return slice != nullptr ? slice + offset : nullptr;
    }
    // Returns the same for all members, if all are mapped. Valid while this object lives.
    [[nodiscard]] barrier::MemberStates addresses(std::uint64_t offset) const;
    // Returns `map` with the members' numbering; without mapped PEs unless is_strided().
    [[nodiscard]] FastMap renumbered(const FastMap& world) const;

private:
    Members members_;
    int own_index_;
    bool all_mapped_;
    bool is_strided_;
    std::byte* own_slice_;
    std::byte* first_slice_ = nullptr;
    std::ptrdiff_t distance_ = 0;
    std::vector<std::byte*> slices_;  // by member, null where not mapped; empty if is_strided_
};

}  // namespace npushmem
