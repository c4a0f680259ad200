// The pool of slots for the state of teams, in this PE's slice.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "core/team/team.hpp"

namespace npushmem {

// A PE's answer about a slot: it claimed it; another team has it there; or the PE has no memory there and never will.
enum class SlotClaim : std::uint32_t { claimed = 1, contended = 2, unavailable = 3 };

// A team that its members have agreed on; all of them have claimed and prepared its slot.
struct AgreedTeam {
    int slot = -1;
    Members members;
    bool mapped = true;  // every member maps every member
};

// Returns the first `count` slots of the set, or all if it has fewer.
std::vector<int> first_slots(const TeamSlotSet& set, std::size_t count);

// Removes the slots that are not in `other`.
void intersect(TeamSlotSet& set, const TeamSlotSet& other);

// Any thread.
class TeamSlots {
public:
    // Commits a range of the own slice.
    using Commit = std::function<Status(std::uint64_t offset, std::uint64_t bytes)>;

    // The pool is the range of `pool_bytes` at `pool` in every slice; its first `header_bytes` serve other purposes.
    // The first `predefined` slots are never free. `resources` outlives this.
    TeamSlots(const TeamResources& resources, std::uint64_t pool, std::uint64_t pool_bytes, std::uint64_t header_bytes,
              int predefined, Commit commit);
    TeamSlots(const TeamSlots&) = delete;
    TeamSlots& operator=(const TeamSlots&) = delete;

    [[nodiscard]] int count() const { return count_; }
    [[nodiscard]] TeamLayout layout(int slot) const { return {offset_of(slot), resources_.npes}; }
    // Commits the header and the first slots together: the PEs of a host commit memory one after another.
    Status commit_first(int slots);

    [[nodiscard]] TeamSlotSet free();
    // Takes a slot; false: it is not free.
    bool claim(int slot);
    void release(int slot);
    // Commits and clears the memory of a claimed slot, before any PE writes there.
    Status prepare(int slot);

private:
    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return pool_ + header_bytes_ + static_cast<std::uint64_t>(slot) * slot_bytes_;
    }
    Status commit(std::uint64_t begin, std::uint64_t bytes);

    const TeamResources& resources_;
    std::uint64_t pool_;
    std::uint64_t header_bytes_;
    std::uint64_t slot_bytes_;
    int count_;
    Commit commit_;
    std::mutex lock_;
    TeamSlotSet free_{};           // under lock_
    std::vector<bool> committed_;  // under lock_, by units of the pool
};

}  // namespace npushmem
