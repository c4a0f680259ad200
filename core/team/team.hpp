// SPDX-License-Identifier: BSD-3-Clause
// Teams and the layout of their state in symmetric memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/coll/cache_line_exchange.hpp"
#include "core/coll/collectives_library.hpp"
#include "core/coll/group.hpp"
#include "core/coll/leader_exchange.hpp"
#include "core/map/fast_map.hpp"
#include "core/memory/control_block.hpp"
#include "core/team/collective_calls.hpp"
#include "core/team/members.hpp"
#include "core/team/team_barrier.hpp"
#include "core/team/team_hosts.hpp"

namespace npushmem {

// The layout of teams' state in symmetric memory: a pool of equal slots, one per team that can exist at a time, at the
// same offset in every PE's slice.
//
//     offset 0                                        of a slot, all zero when a team begins
//     | barrier state, for a team of all PEs | departed, entered | counts |
//       workspace of the collectives | lines | ring | shrink_record 0 | shrink_record 1 |
//       in a job of several hosts: host sync | leader exchange |
//
// Sizes are functions of the number of PEs and of this alone. The world's `entered` and `counts` are in the control
// block instead.

inline constexpr int max_teams = 256;  // at a time, including the predefined ones

// The free slots, one bit each.
using TeamSlotSet = std::array<std::uint64_t, max_teams / 64>;

// The message of a member to the others while they split a team.
struct SplitRecord {
    std::uint64_t arguments[3];  // of the call: equal on all members
    TeamSlotSet free;
    std::uint16_t tag;     // of the barrier that publishes the record: what else is there is another call's
    std::uint16_t claim;   // a SlotClaim. First: whether this PE wants a team; then: whether it got the chosen slots
    std::uint32_t mapped;  // bit i: this PE maps every member of the new team i
};
static_assert(sizeof(SplitRecord) <= coll::Workspace::contribution_bytes);

class TeamLayout {
public:
    // `offset` of the team's slot in every slice, for a job of `npes` PEs.
    TeamLayout(std::uint64_t offset, int npes)
        : offset_(offset),
          state_bytes_(barrier_bytes(npes)),
          shrink_record_bytes_(shrink_bytes(npes)),
          host_sync_bytes_(coll::HostSync::memory_bytes(npes)) {}
    // Returns the size of a slot.
    static std::uint64_t bytes(int npes, bool several_hosts) {
        const TeamLayout slot(0, npes);
        return several_hosts ? slot.leader_exchange() + coll::LeaderExchange::bytes : slot.host_sync();
    }

    [[nodiscard]] std::uint64_t barrier_state() const { return offset_; }
    [[nodiscard]] std::uint64_t departed() const { return offset_ + state_bytes_; }
    [[nodiscard]] std::uint64_t entered() const { return departed() + sizeof(std::uint64_t); }
    [[nodiscard]] std::uint64_t counts() const { return departed() + 64; }
    [[nodiscard]] std::uint64_t workspace() const { return counts() + sizeof(BarrierCounters); }
    [[nodiscard]] std::uint64_t lines() const { return workspace() + coll::Workspace::bytes; }
    [[nodiscard]] std::uint64_t ring() const { return lines() + coll::CacheLineExchange::bytes; }
    // See ShrinkRecords; the records of consecutive calls differ.
    static constexpr std::uint64_t shrink_header_bytes = 64;
    [[nodiscard]] std::uint64_t shrink_record(std::uint64_t call) const {
        return shrink_records() + call % 2 * shrink_record_bytes_;
    }
    [[nodiscard]] std::uint64_t host_sync() const { return shrink_records() + 2 * shrink_record_bytes_; }
    [[nodiscard]] std::uint64_t leader_exchange() const { return host_sync() + host_sync_bytes_; }

private:
    [[nodiscard]] std::uint64_t shrink_records() const { return ring() + coll::BroadcastRing::bytes; }
    static std::uint64_t barrier_bytes(int npes) { return (barrier::state_bytes(npes) + 63) / 64 * 64; }
    // A bit for each PE.
    static std::uint64_t shrink_bytes(int npes) {
        return shrink_header_bytes + (static_cast<std::uint64_t>(npes) + 511) / 512 * 64;
    }

    std::uint64_t offset_;
    std::uint64_t state_bytes_;
    std::uint64_t shrink_record_bytes_;
    std::uint64_t host_sync_bytes_;
};

// A team, as its member on this PE uses it: its name, its barrier, and this PE's memory and transports for collectives.
class Team final : public coll::Group {
public:
    // Creates a team that includes this PE. `all_mapped`: every member maps every member. The barrier of the world has
    // its counts in the control block, where other PEs find them, and knows the hosts.
    Team(const TeamResources& resources, Members members, const TeamLayout& layout, bool all_mapped, std::string name,
         bool is_world = false);

    [[nodiscard]] const Members& members() const { return memory_.members(); }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const TeamLayout& layout() const { return layout_; }
    [[nodiscard]] TeamBarrier& barrier() { return barrier_; }
    [[nodiscard]] CollectiveCalls& calls() { return calls_; }

    // Returns the fast map with the team's numbering. It is empty unless the members are at equal distances in mapped
    // memory; then every operation takes the slow path, which first finds the member's PE.
    [[nodiscard]] FastMap map() const { return memory_.renumbered(resources_.map); }

    int contexts_wanted = 0;          // the team's configuration
    std::uint64_t checked_calls = 0;  // with NPUSHMEM_CHECK
    std::uint64_t shrinks = 0;        // completed
    bool shrink_failed = false;       // its members no longer agree on the number

    [[nodiscard]] int size() const override { return members().count(); }
    [[nodiscard]] int index() const override { return memory_.own_index(); }
    Status sync() override { return barrier_.sync(barrier_.default_plan()); }
    // Where all are mapped, no operation of the team uses a transport.
    Status complete() override { return all_mapped() ? Status{} : complete_members(resources_.remote, pes_); }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        return memory_.address(member, offset);
    }
    [[nodiscard]] bool all_mapped() const override { return memory_.all_mapped(); }
    [[nodiscard]] bool is_oversubscribed() const override { return resources_.pes_per_core > 1; }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) override;
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override;
    Status put_blocks(int member, const StridedBlocks& blocks, const void* source) override;
    [[nodiscard]] std::uint64_t workspace() const override { return layout_.workspace(); }
    unsigned next_workspace_half() override { return workspace_uses_++ % 2; }
    [[nodiscard]] const coll::HostGrid* host_grid() const override { return host_grid_.get(); }
    [[nodiscard]] coll::HostSync* host_sync() const override { return host_sync_.get(); }
    [[nodiscard]] coll::SmallExchange* small_exchange() override {
        return leader_exchange_ ? leader_exchange_.get() : static_cast<coll::SmallExchange*>(lines_.get());
    }
    [[nodiscard]] coll::SmallBroadcast* small_broadcast() override {
        return leader_exchange_ ? leader_exchange_.get() : static_cast<coll::SmallBroadcast*>(ring_.get());
    }
    [[nodiscard]] coll::LibraryTeam* library() override { return library_.get(); }
    [[nodiscard]] coll::Method method(std::uint32_t collective, std::uint64_t bytes) const override;
    // Selects what runs the team's collectives: "npushmem", "npushmem:<method>", the library of the job by its name, or
    // "auto", the rules of the tuning file. Equal on all members. Code::argument for another name.
    Status select_collectives(std::string_view choice);
    // Returns the choice.
    [[nodiscard]] const std::string& selected_collectives() const { return selected_collectives_; }

private:
    void begin_library();
    void begin_lines();
    void begin_hosts();
    void keep_method_rules();

    const TeamResources& resources_;
    MemberMemory memory_;
    TeamLayout layout_;
    std::string name_;
    std::vector<int> pes_;  // see listed_unless_all()
    CollectiveCalls calls_;
    TeamBarrier barrier_;
    std::unique_ptr<const coll::HostGrid> host_grid_;
    std::unique_ptr<coll::CacheLineExchange> lines_;  // null: not all mapped, or too many members
    std::unique_ptr<coll::BroadcastRing> ring_;       // the same
    // Null: one host, or too many; not every PE maps those of its host.
    std::unique_ptr<coll::HostSignals> host_signals_;
    std::unique_ptr<coll::HostSync> host_sync_;
    std::unique_ptr<coll::LeaderExchange> leader_exchange_;  // the same; or too many members
    std::unique_ptr<coll::LibraryTeam> library_;             // null: without a library, or one member
    struct MethodRule {
        barrier::TuningRange bytes;
        coll::Method method;
    };
    // By collective; of the tuning file, for teams as this one.
    std::array<std::vector<MethodRule>, coll::collective_count> method_rules_;
    std::string selected_collectives_ = "auto";
    coll::Method method_ = coll::Method::automatic;  // selected for all collectives that have it
    unsigned workspace_uses_ = 0;
};

}  // namespace npushmem
