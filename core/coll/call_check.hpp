// NPUSHMEM_CHECK: before a collective call does anything, its members exchange records of the call and compare them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/coll/group.hpp"

namespace npushmem::coll {

// What a member tells of its call; what is no argument of the function is zero on all. Plain bytes: it lies in the
// workspace.
struct CallRecord {
    static constexpr std::uint64_t magic_value = 0x43414c4c43484543;

    std::uint64_t magic = magic_value;
    std::uint64_t sequence = 0;  // of the group's calls that are compared; a smaller one is an older call's record
    char function[72] = {};      // tells the operation and the type as well
    std::uint64_t count = 0;
    std::int64_t root = 0;
    std::int64_t dst = 0;
    std::int64_t sst = 0;
    std::uint64_t dest = 0;        // offset
    std::uint64_t source = 0;      // offset
    std::int32_t members[3] = {};  // first, stride (0: of a list), count
    std::uint32_t list_hash = 0;
    std::int32_t counts_differ = 0;  // may: collect
    std::int32_t code = 0;           // not 0: this member has refused its own arguments

    void name(std::string_view called);
};
static_assert(sizeof(CallRecord) <= Workspace::contribution_bytes);

// Collective over the group: the same failure (Code::mismatch) on all members when two of them differ. `group_name`:
// for the message.
Status check_call(Group& group, const CallRecord& mine, const std::string& group_name);

}  // namespace npushmem::coll
