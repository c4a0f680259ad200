// Messages between PEs that have no team in common yet but the world's memory: each PE has a mailbox of a few slots in
// its slice, into which anybody puts, and which its owner empties while it waits.
//
//     a slot of 512 bytes: | state | message |      state 0: free; else the writer's PE + 1, with `full` once it is
//                                                  readable. Free -> claimed -> full by the writer, -> free by the
//                                                  owner
//
// Any thread; whoever waits empties the mailbox for all threads of this PE. Messages for ids that nobody expects are
// dropped.
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

// `id`: of what it is about; `number`: counts the sender's messages about it. Only the first `count` words are sent.
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

    // `mailbox`: its offset in every slice, of zeroed memory. `resources` outlives this.
    TeamMailbox(const TeamResources& resources, std::uint64_t mailbox) : resources_(resources), offset_(mailbox) {}
    TeamMailbox(const TeamMailbox&) = delete;
    TeamMailbox& operator=(const TeamMailbox&) = delete;

    // From here on messages about the id are kept, until forget(); what lies in the mailbox about others is dropped, so
    // that it does not fill up. False: they were kept already.
    bool expect(std::uint64_t id);
    void forget(std::uint64_t id);
    // A message of this PE to itself; dropped unless the id is expected.
    void deliver_locally(const TeamMessage& message);
    // What it waits for is room in the other's mailbox. The own one is emptied meanwhile, so that two who write to each
    // other do not wait for each other. Nothing is sent once `cancelled` says so.
    Status send(int pe, const TeamMessage& message, const std::function<bool()>& cancelled = {});
    // The earliest message about the id that has come; with `number`, the one of that number. Does not wait.
    std::optional<TeamMessage> take(std::uint64_t id, std::optional<std::uint32_t> number = {});
    // Lets the transports work, where there are any; what they fail at may be about any PE.
    Status progress() { return resources_.remote.progress(); }

private:
    static constexpr std::uint64_t full = std::uint64_t{1} << 63;

    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return offset_ + static_cast<std::uint64_t>(slot) * slot_bytes;
    }
    void drain();
    // *done: it has been put into that slot.
    Status try_slot(int pe, int slot, const TeamMessage& message, bool& done);
    Status try_remote_slot(int pe, int slot, const TeamMessage& message, bool& done);

    const TeamResources& resources_;
    std::uint64_t offset_;
    std::mutex lock_;
    std::map<std::uint64_t, std::deque<TeamMessage>> inbox_;  // by id, of those that are expected; under lock_
};

// What became of ids that were made for making a team: for PEs that come with one when its maker has left and no
// message is answered any more. Each PE has a table in its slice, which it writes and anybody reads.
//
//     | how many ids it has made | entries |      an entry of 32 bytes: | the number of an id, 0: none | five words |
//
// An id's entry is found by its number, so an entry lasts until the maker closes an id that is `entries` numbers away.

class TeamFormationOutcomes {
public:
    static constexpr std::uint64_t entries = 64;
    static constexpr std::uint64_t entry_bytes = 32;
    static constexpr std::uint64_t bytes = 64 + entries * entry_bytes;
    using Words = std::array<std::uint32_t, 5>;

    // `table`: its offset in every slice, of zeroed memory. `resources` outlives this.
    TeamFormationOutcomes(const TeamResources& resources, std::uint64_t table)
        : resources_(resources), table_offset_(table) {}
    TeamFormationOutcomes(const TeamFormationOutcomes&) = delete;
    TeamFormationOutcomes& operator=(const TeamFormationOutcomes&) = delete;

    // This PE has made the id of this number, and those below.
    void publish_made(std::uint32_t number);
    [[nodiscard]] Result<bool> was_made(int maker, std::uint32_t number) const;

    // Of an id of this PE; `number` is not 0. Whoever looks after this has returned finds it. One thread at a time.
    void close(std::uint32_t number, const Words& words);
    // What `maker` has said of an id of its own; nothing when it is open, or was closed too long ago.
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
