// A team, as its member on this PE uses it: its members, its barrier, and this PE's part in collective operations.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/coll/group.hpp"
#include "core/map/fast_map.hpp"
#include "core/memory/control_block.hpp"
#include "core/team/team_barrier.hpp"

namespace npushmem {

// The layout of teams' state in symmetric memory: a pool of equal slots, one per team that can exist at a time, at the
// same offset in every PE's slice.
//
//     offset 0                                        of a slot, all zero when a team begins
//     | barrier state, for a team of all PEs | departed | split_record 0 | split_record 1 | counts | workspace of the
//       collectives | lines | ring |
//
// Sizes are functions of the number of PEs alone.

inline constexpr int max_teams = 256;  // at a time, including the predefined ones

// The free slots, one bit each.
using TeamSlotSet = std::array<std::uint64_t, max_teams / 64>;

// The message of a member to the others while they split a team. Its PE writes it before a barrier, and all read it
// after the barrier. Two records alternate, so that none is overwritten while another PE reads it.
struct alignas(64) SplitRecord {
    std::uint64_t arguments[3];  // of the call: equal on all members
    TeamSlotSet free;
    std::uint32_t granted;  // first: whether this PE wants a team; then: whether it got the chosen slots
    std::uint32_t mapped;   // bit i: this PE maps every member of the new team i
};
static_assert(sizeof(SplitRecord) == 64);

struct TeamLayout {
    explicit TeamLayout(int npes) : state_bytes((barrier::state_bytes(npes) + 63) / 64 * 64) {}

    std::uint64_t state_bytes;

    [[nodiscard]] std::uint64_t departed() const { return state_bytes; }
    [[nodiscard]] std::uint64_t split_record(unsigned half) const {
        return state_bytes + 64 + half * sizeof(SplitRecord);
    }
    [[nodiscard]] std::uint64_t counts() const { return split_record(2); }
    [[nodiscard]] std::uint64_t workspace() const { return counts() + sizeof(BarrierCounters); }
    [[nodiscard]] std::uint64_t lines() const { return workspace() + coll::Workspace::bytes; }
    [[nodiscard]] std::uint64_t ring() const { return lines() + coll::CacheLineExchange::bytes; }
    [[nodiscard]] std::uint64_t bytes() const { return ring() + coll::BroadcastRing::bytes; }
};

// The resources of all teams; all references outlive the teams.
struct TeamResources {
    int my_pe;
    int npes;
    double pes_per_core;
    const FastMap& map;
    SliceLookup slice_of;  // for PEs outside the fast map
    std::byte* own_slice;
    RemoteAccess& remote;
    const Waiter& waiter;
    Duration timeout;
    std::string algorithm;  // NPUSHMEM_BARRIER_ALGO
    const barrier::Tuning& tuning;
    std::function<Status()> sync_world;
    std::uint64_t sample_every = 0;  // barriers; 0: no statistics
    WaitOs* os = nullptr;            // for statistics
};

class Team final : public coll::Group {
public:
    // Creates a team that includes this PE. `state_offset`: offset of the team's state. `mapped`: every member maps
    // every member. Only the world has no barrier of its own and uses WorldTeam's.
    Team(const TeamResources& resources, Members members, std::uint64_t state_offset, bool mapped, std::string name,
         bool own_barrier = true);

    [[nodiscard]] const Members& members() const { return members_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    // Returns the index of a world PE in this team; -1 when it is not a member.
    [[nodiscard]] int index_of(int world_pe) const { return members_.index_of(world_pe); }
    [[nodiscard]] std::uint64_t state_offset() const { return state_offset_; }
    [[nodiscard]] const TeamLayout& layout() const { return layout_; }
    // Returns which of the two split records is next.
    unsigned next_split_record() { return split_records_++ % 2; }

    // Returns the fast map with the team's numbering. It is empty unless the members are at equal distances in mapped
    // memory; then every operation takes the slow path, which first finds the member's PE.
    [[nodiscard]] FastMap map() const;

    int contexts_wanted = 0;          // the team's configuration
    std::uint64_t checked_calls = 0;  // with NPUSHMEM_CHECK

    // Not for the world, see WorldTeam. All members pass the same plan.
    Status sync(const barrier::Plan& plan);
    // Resolves this text, as in NPUSHMEM_BARRIER_ALGO, for this team.
    [[nodiscard]] Result<barrier::Choice> choose(std::string_view text) const;
    // Sets the plan of sync().
    void set_plan(const barrier::Plan& plan) { plan_ = plan; }
    // Returns the counts of this PE, except for the world, which keeps its own.
    [[nodiscard]] const BarrierCounters& counts() const { return *counts_of(index_); }

    [[nodiscard]] int size() const override { return size_; }
    [[nodiscard]] int index() const override { return index_; }
    Status sync() override { return barrier_ ? sync(plan_) : resources_.sync_world(); }
    Status complete() override { return resources_.remote.quiet(); }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        if (member == index_) return resources_.own_slice + offset;
        if (is_strided_) [[likely]]
            return first_slice_ + member * distance_ + offset;
        std::byte* const slice = slices_[static_cast<std::size_t>(member)];
        return slice != nullptr ? slice + offset : nullptr;
    }
    [[nodiscard]] bool all_mapped() const override { return all_mapped_; }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) override;
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override;
    Status put_blocks(int member, const StridedBlocks& blocks, const void* source) override;
    [[nodiscard]] std::uint64_t workspace() const override { return state_offset_ + layout_.workspace(); }
    unsigned next_workspace_half() override { return uses_++ % 2; }
    [[nodiscard]] coll::CacheLineExchange* line_exchange() override { return lines_.get(); }
    [[nodiscard]] coll::BroadcastRing* broadcast_ring() override { return ring_.get(); }

private:
    const TeamResources& resources_;
    Members members_;
    int size_;
    int index_;
    std::uint64_t state_offset_;
    TeamLayout layout_;
    std::string name_;
    bool all_mapped_;
    bool is_strided_;  // all are mapped, at equal distances
    std::byte* first_slice_ = nullptr;
    std::ptrdiff_t distance_ = 0;
    std::vector<std::byte*> slices_;  // by member, null where not mapped; empty if is_strided_
    void find_slices();
    [[nodiscard]] barrier::MemberStates states() const;
    [[nodiscard]] barrier::BarrierSelectionInput selection_input() const;
    [[nodiscard]] BarrierCounters* counts_of(int member) const;
    void count();

    std::unique_ptr<TeamBarrier> barrier_;  // null: the world
    barrier::Plan plan_;
    std::uint64_t barriers_ = 0;
    std::unique_ptr<BarrierStatistics> statistics_;   // null: disabled
    std::unique_ptr<coll::CacheLineExchange> lines_;  // null: not all mapped, or too many members
    std::unique_ptr<coll::BroadcastRing> ring_;       // the same
    unsigned uses_ = 0;
    unsigned split_records_ = 0;
};

// Returns where a PE's slice is mapped; null where it is not. This PE's own slice is always mapped.
std::byte* slice_of(const TeamResources& resources, int pe);

}  // namespace npushmem
