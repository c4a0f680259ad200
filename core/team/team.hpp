// A team as one of its members has it: who belongs to it, its barrier, and its side of the collective operations.
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
#include "core/memory/control_block.hpp"
#include "core/ops/fast_map.hpp"
#include "core/team/team_barrier.hpp"

namespace npushmem {

// Where teams keep their state in symmetric memory: a pool of equal slots, one for each team that can exist at a time,
// at the same offset in every PE's slice.
//
//     offset 0                                        of a slot, all zero when a team begins
//     | barrier state, for a team of all PEs | departed | split_record 0 | split_record 1 | counts | workspace of the
//       collectives | lines | ring |
//
// Sizes are functions of the number of PEs alone.

inline constexpr int max_teams = 256;  // at a time, the predefined ones among them

// Which slots are free, as one bit each.
using TeamSlotSet = std::array<std::uint64_t, max_teams / 64>;

// What a member tells the others of a team while they make another one. Written by its PE before a barrier, read by all
// after it; two in turn, so that nobody overwrites what another may still read.
struct alignas(64) SplitRecord {
    std::uint64_t arguments[3];  // of the call: equal on all
    TeamSlotSet free;
    std::uint32_t granted;  // first: this PE wants a team at all; then: the slots chosen could be taken
    std::uint32_t mapped;   // bit i: every member of the new team i is mapped here
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

// What every team is made from; everything referred to outlives the teams.
struct TeamResources {
    int my_pe;
    int npes;
    double pes_per_core;
    const FastMap& map;
    SliceLookup slice_of;  // for PEs that the fast map does not hold
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
    // Of which this PE is a member. `state_offset`: offset of the team's state. `mapped`: every member maps every
    // member. Without a barrier of its own it is the world, and meets at the world's.
    Team(const TeamResources& resources, Members members, std::uint64_t state_offset, bool mapped, std::string name,
         bool own_barrier = true);

    [[nodiscard]] const Members& members() const { return members_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    // The number of a world PE here; -1 when it is none of the members.
    [[nodiscard]] int index_of(int world_pe) const { return members_.index_of(world_pe); }
    [[nodiscard]] std::uint64_t state_offset() const { return state_offset_; }
    [[nodiscard]] const TeamLayout& layout() const { return layout_; }
    // Which of the two agreements comes next.
    unsigned next_split_record() { return split_records_++ % 2; }

    // The fast map with the team's numbers; empty where the members are not at equal distances in mapped memory, and
    // every operation takes the slow path, which finds the member's PE first.
    [[nodiscard]] FastMap map() const;

    int contexts_wanted = 0;          // the team's configuration
    std::uint64_t checked_calls = 0;  // with NPUSHMEM_CHECK

    // Of teams other than the world, which has its own ways (see WorldTeam). The same plan at all members.
    Status sync(const barrier::Plan& plan);
    // What this text, as in NPUSHMEM_BARRIER_ALGO, stands for in this team.
    [[nodiscard]] Result<barrier::Choice> choose(std::string_view text) const;
    // What sync() takes from now on.
    void set_plan(const barrier::Plan& plan) { plan_ = plan; }
    // What has been counted of this PE, of which the world keeps its own.
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
    bool is_strided_;  // all are found, and at equal distances
    std::byte* first_slice_ = nullptr;
    std::ptrdiff_t distance_ = 0;
    std::vector<std::byte*> slices_;  // by member, null where not mapped; empty when equally far
    void find_slices();
    [[nodiscard]] barrier::MemberStates states() const;
    [[nodiscard]] barrier::BarrierSelectionInput selection_input() const;
    [[nodiscard]] BarrierCounters* counts_of(int member) const;
    void count();

    std::unique_ptr<TeamBarrier> barrier_;  // null: the world's
    barrier::Plan plan_;
    std::uint64_t barriers_ = 0;
    std::unique_ptr<BarrierStatistics> statistics_;   // null: none wanted
    std::unique_ptr<coll::CacheLineExchange> lines_;  // null: not all mapped, or too many
    std::unique_ptr<coll::BroadcastRing> ring_;       // likewise
    unsigned uses_ = 0;
    unsigned split_records_ = 0;
};

// Where a PE's slice is mapped here; null where it is not. This PE's own is there whatever transport serves the PE.
std::byte* slice_of(const TeamResources& resources, int pe);

}  // namespace npushmem
