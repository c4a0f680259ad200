// SPDX-License-Identifier: BSD-3-Clause
// With NPUSHMEM_CHECK, the members of a collective call exchange records of the call and compare them before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/coll/group.hpp"

namespace npushmem::coll {

// A member's record of its call; unused arguments are zero on all members. Plain bytes in the workspace.
struct CallRecord {
    static constexpr std::uint64_t magic_value = 0x43414c4c43484543;

    std::uint64_t magic = magic_value;
    std::uint64_t sequence = 0;  // counts the group's compared calls; a smaller one is from an earlier call
    char function[72] = {};      // includes the operation and the type
    char collectives[32] = {};   // what npushmemx_team_set_collectives has selected, truncated
    std::uint64_t count = 0;
    std::int64_t root = 0;
    std::int64_t dst = 0;
    std::int64_t sst = 0;
    std::uint64_t dest = 0;        // offset
    std::uint64_t source = 0;      // offset
    std::int32_t members[3] = {};  // first, stride (0: of a list), count
    std::uint32_t list_hash = 0;
    std::int32_t counts_differ = 0;  // the counts may differ: collect
    std::int32_t code = 0;           // not 0: this member rejected its own arguments

    void name(std::string_view called);
    void select(std::string_view selected);
};
static_assert(sizeof(CallRecord) <= Workspace::contribution_bytes);

// Collective over the group. Fails on all members (Code::mismatch) when two of them differ. `group_name` is for the
// message.
Status check_call(Group& group, const CallRecord& mine, const std::string& group_name);

}  // namespace npushmem::coll
