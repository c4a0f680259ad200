// SPDX-License-Identifier: BSD-3-Clause
// The records of a team's shrinks in symmetric memory: two in each member's slice, which alternate. A member that
// publishes for call n + 2 has completed call n + 1, so all members that it has not excluded have completed call n. One
// that it has excluded finds the record of the later call.
//
//     64-bit words of a record: | checksum of the others | call | phase, claim | slot + 1, mapped, left | free slots: 4
//     |
//                               failed members: one bit each |      all zero: none
//
// A member writes only its own records; others read them while they are written, and notice that by the checksum.
#pragma once

#include <cstdint>
#include <optional>

#include "core/team/shrink_agreement.hpp"

namespace npushmem {

class ShrinkRecords {
public:
    // Both outlive this.
    ShrinkRecords(const TeamResources& resources, const Team& team) : resources_(resources), team_(team) {}

    void publish(const ShrinkRecord& record);
    // Marks this PE's records: it continues no call and begins no further one.
    void publish_end();
    // Returns the member's record of this parity; nothing if the member is writing it.
    [[nodiscard]] Result<std::optional<ShrinkRecord>> read(int member, std::uint64_t call) const;

private:
    using Words = std::vector<std::uint64_t>;

    [[nodiscard]] Words load(const std::byte* from) const;
    [[nodiscard]] std::optional<ShrinkRecord> parse(const Words& words) const;

    const TeamResources& resources_;
    const Team& team_;
};

}  // namespace npushmem
