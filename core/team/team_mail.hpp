// Letters between PEs that have no team in common yet but the world's memory: each PE has a box of a few slots in its
// slice, into which anybody puts, and which its owner empties while it waits.
//
//     a slot of 512 bytes: | state | letter |      state 0: free; else the writer's PE + 1, with `full` once it is
//                                                  readable. Free -> claimed -> full by the writer, -> free by the
//                                                  owner
//
// Any thread; whoever waits empties the box for all threads of this PE. Letters for ids that nobody expects are
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

// `id`: of what it is about; `number`: counts the sender's letters about it. Only the first `count` words are sent.
struct Letter {
    static constexpr std::size_t most_words = 120;

    std::uint64_t id = 0;
    std::int32_t from = 0;
    std::uint32_t number = 0;
    std::uint32_t kind = 0;
    std::uint32_t count = 0;
    std::array<std::uint32_t, most_words> words{};

    void add(std::uint32_t word) { words[count++] = word; }
    [[nodiscard]] std::uint64_t bytes() const { return offsetof(Letter, words) + count * sizeof(std::uint32_t); }
};

class TeamMail {
public:
    static constexpr int slots = 8;
    static constexpr std::uint64_t slot_bytes = 512;
    static constexpr std::uint64_t bytes = slots * slot_bytes;

    // `box`: its offset in every slice, of zeroed memory. `parts` outlives this.
    TeamMail(const TeamParts& parts, std::uint64_t box) : parts_(parts), box_(box) {}
    TeamMail(const TeamMail&) = delete;
    TeamMail& operator=(const TeamMail&) = delete;

    // From here on letters about the id are kept, until forget(); what lies in the box about others is dropped, so that
    // it does not fill up. False: they were kept already.
    bool expect(std::uint64_t id);
    void forget(std::uint64_t id);
    // A letter of this PE to itself; dropped unless the id is expected.
    void keep(const Letter& letter);
    // What it waits for is room in the other's box. The own one is emptied meanwhile, so that two who write to each
    // other do not wait for each other. Nothing is sent once `needless` says so.
    Status send(int pe, const Letter& letter, const std::function<bool()>& needless = {});
    // The earliest letter about the id that has come; with `number`, the one of that number. Does not wait.
    std::optional<Letter> take(std::uint64_t id, std::optional<std::uint32_t> number = {});
    // Lets the transports work, where there are any; what they fail at may be about any PE.
    Status progress() { return parts_.remote.progress(); }

private:
    static constexpr std::uint64_t full = std::uint64_t{1} << 63;

    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return box_ + static_cast<std::uint64_t>(slot) * slot_bytes;
    }
    void empty_box();
    // *done: it has been put into that slot.
    Status try_slot(int pe, int slot, const Letter& letter, bool& done);
    Status try_remote_slot(int pe, int slot, const Letter& letter, bool& done);

    const TeamParts& parts_;
    std::uint64_t box_;
    std::mutex lock_;
    std::map<std::uint64_t, std::deque<Letter>> kept_;  // by id, of those that are expected; under lock_
};

}  // namespace npushmem
