// What became of ids that were made for making a team: for PEs that come with one when its maker has left and no
// message is answered any more. Each PE has a table in its slice, which it writes and anybody reads.
//
//     | how many ids it has made | entries |      an entry of 32 bytes: | the number of an id, 0: none | five words |
//
// An id's entry is found by its number, so an entry lasts until the maker closes an id that is `entries` numbers away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/team/team.hpp"

namespace npushmem {

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
