// SPDX-License-Identifier: BSD-3-Clause
// Messages between PEs that share no team but the world. Each PE has a mailbox of a few slots in its slice: any PE
// writes messages into it, and its owner removes them while it waits.
//
//     a slot of 512 bytes: | state | message |      state 0: free; else the writer's PE + 1, with `full` once it is
//                                                  readable. Free -> claimed -> full by the writer, -> free by the
//                                                  owner, also after the death of a writer
//
// Any thread may use it; a waiting thread empties the mailbox for all threads of this PE. Messages with unexpected ids
// are dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/team/team.hpp"

namespace npushmem {

// `id` identifies the subject; `number` counts the sender's messages about it. Only the first `count` words are sent.
struct TeamMessage {
    static constexpr std::size_t max_words = 120;

    std::uint64_t id = 0;
    std::int32_t from = 0;
    std::uint32_t number = 0;
    std::uint32_t kind = 0;
    std::uint32_t count = 0;
    std::array<std::uint32_t, max_words> words{};

    void add(std::uint32_t word) { words[count++] = word; }
    [[nodiscard]] std::uint64_t bytes() const { return offsetof(TeamMessage, words) + count * sizeof(std::uint32_t); }
};

class TeamMailbox {
public:
    static constexpr int slots = 8;
    static constexpr std::uint64_t slot_bytes = 512;
    static constexpr std::uint64_t bytes = slots * slot_bytes;

    // `mailbox` is the offset of zeroed memory in every slice. `resources` outlives this.
    TeamMailbox(const TeamResources& resources, std::uint64_t mailbox) : resources_(resources), offset_(mailbox) {}
    TeamMailbox(const TeamMailbox&) = delete;
    TeamMailbox& operator=(const TeamMailbox&) = delete;

    // Keeps messages about the id from now on, until forget(); messages with other ids are dropped, so that they do not
    // fill the mailbox. False: the id was already expected.
    bool expect(std::uint64_t id);
    void forget(std::uint64_t id);
    // Delivers a message of this PE to itself; drops it unless the id is expected.
    void deliver_locally(const TeamMessage& message);
    // Sends a message; waits for a free slot in the other PE's mailbox. Empties the own mailbox meanwhile, so that two
    // PEs that write to each other do not deadlock. Sends nothing once `cancelled` returns true.
    Status send(int pe, const TeamMessage& message, const std::function<bool()>& cancelled = {});
    // Returns the earliest message received about the id; with `number`, the one with that number. Does not wait.
    std::optional<TeamMessage> take(std::uint64_t id, std::optional<std::uint32_t> number = {});
    // Drives the transports, if any; a failure may concern any PE.
    Status progress() { return resources_.remote.progress(); }

private:
    static constexpr std::uint64_t full = std::uint64_t{1} << 63;

    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return offset_ + static_cast<std::uint64_t>(slot) * slot_bytes;
    }
    void drain();
    // `claimed` is the slot's state.
    void free_if_dead(int slot, std::uint64_t claimed);
    // *done: the message has been put into that slot.
    Status try_slot(int pe, int slot, const TeamMessage& message, bool& done);
    Status try_remote_slot(int pe, int slot, const TeamMessage& message, bool& done);

    const TeamResources& resources_;
    std::uint64_t offset_;
    std::mutex lock_;
    std::map<std::uint64_t, std::deque<TeamMessage>> inbox_;  // by expected id; under lock_
};

// The outcomes of team ids, for PEs that arrive when the leader has finished and answers no more messages. Each PE has
// a table in its slice, which it writes and any PE reads.
//
//     | number of ids made | entries |      an entry of 32 bytes: | the number of an id, 0: none | five words |
//
// The number of an id selects its entry, so an entry lasts until its PE closes an id that is `entries` numbers away.
class TeamFormationOutcomes {
public:
    static constexpr std::uint64_t entries = 64;
    static constexpr std::uint64_t entry_bytes = 32;
    static constexpr std::uint64_t bytes = 64 + entries * entry_bytes;
    using Words = std::array<std::uint32_t, 5>;

    // `table` is the offset of zeroed memory in every slice. `resources` outlives this.
    TeamFormationOutcomes(const TeamResources& resources, std::uint64_t table)
        : resources_(resources), table_offset_(table) {}
    TeamFormationOutcomes(const TeamFormationOutcomes&) = delete;
    TeamFormationOutcomes& operator=(const TeamFormationOutcomes&) = delete;

    // Publishes that this PE has made the id of this number and those below.
    void publish_made(std::uint32_t number);
    [[nodiscard]] Result<bool> was_made(int maker, std::uint32_t number) const;

    // Closes an id of this PE; `number` is not 0. Lookups that start after it returns find the entry. One thread at a
    // time.
    void close(std::uint32_t number, const Words& words);
    // Returns the outcome of an id of `maker`; nothing when the id is open or was closed too long ago.
    [[nodiscard]] Result<std::optional<Words>> find(int maker, std::uint32_t number) const;

private:
    [[nodiscard]] std::uint64_t offset_of(std::uint32_t number) const {
        return table_offset_ + 64 + number % entries * entry_bytes;
    }
    [[nodiscard]] Result<std::uint64_t> number_at(int maker, std::uint64_t offset) const;

    const TeamResources& resources_;
    std::uint64_t table_offset_;
};

}  // namespace npushmem
