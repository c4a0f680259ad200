// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/call_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/coll/collectives.hpp"

namespace npushmem::coll {

namespace {

// A member's record, with the member's index for messages.
struct MemberCall {
    int member;
    const CallRecord& record;
};

Status differ(const std::string& group, const char* argument, const MemberCall& a, const std::string& first,
              const MemberCall& b, const std::string& second) {
    return {Code::mismatch, fmt::format("{} is {} on PE {} and {} on PE {} of the team {}; all must give the same",
                                        argument, first, a.member, second, b.member, group)};
}

template <class T>
Status same(const std::string& group, const char* argument, const MemberCall& a, T first, const MemberCall& b, T second,
            bool address = false) {
    if (first == second) return {};
    const auto text = [&](T value) { return address ? fmt::format("offset {:#x}", value) : fmt::format("{}", value); };
    return differ(group, argument, a, text(first), b, text(second));
}

std::string members_of(const CallRecord& record) {
    if (record.list_hash != 0)
        return fmt::format("{} listed PEs from {} on (list {:08x})", record.members[2], record.members[0],
                           record.list_hash);
    return fmt::format("{} PEs from {} by {}", record.members[2], record.members[0], record.members[1]);
}

Status compare_arrays(const std::string& group, const MemberCall& a, const MemberCall& b) {
    Status done;
    if (a.record.count == 0 || b.record.count == 0) return done;
    done = same(group, "dest", a, a.record.dest, b, b.record.dest, true);
    return done.ok() ? same(group, "source", a, a.record.source, b, b.record.source, true) : done;
}

Status compare(const std::string& group, const MemberCall& a, const MemberCall& b) {
    const std::string_view first(a.record.function);
    const std::string_view second(b.record.function);
    if (first != second) return differ(group, "the function", a, std::string(first), b, std::string(second));
    if (!std::ranges::equal(a.record.members, b.record.members) || a.record.list_hash != b.record.list_hash)
        return differ(group, "the team", a, members_of(a.record), b, members_of(b.record));
    const std::string_view ones(a.record.collectives);
    const std::string_view others(b.record.collectives);
    if (ones != others)
        return differ(group, "the choice of npushmemx_team_set_collectives", a, std::string(ones), b,
                      std::string(others));
    Status done;
    if (a.record.counts_differ == 0) done = same(group, "count", a, a.record.count, b, b.record.count);
    if (done.ok()) done = same(group, "root", a, a.record.root, b, b.record.root);
    if (done.ok()) done = same(group, "dst", a, a.record.dst, b, b.record.dst);
    if (done.ok()) done = same(group, "sst", a, a.record.sst, b, b.record.sst);
    return done.ok() ? compare_arrays(group, a, b) : done;
}

// Returns all members' records of this call. A record of an earlier call has another sequence.
Result<std::vector<CallRecord>> exchange(Group& group, const CallRecord& mine) {
    std::vector<CallRecord> all(static_cast<std::size_t>(group.size()));
    Status done = gather_small(group, &mine, sizeof mine, all.data());
    if (!done.ok()) return done;
    return all;
}

}  // namespace

void CallRecord::name(std::string_view called) {
    const std::size_t length = std::min(called.size(), sizeof function - 1);
    std::memcpy(function, called.data(), length);
}

void CallRecord::select(std::string_view selected) {
    std::memcpy(collectives, selected.data(), std::min(selected.size(), sizeof collectives - 1));
}

Status check_call(Group& group, const CallRecord& mine, const std::string& group_name) {
    const auto all = exchange(group, mine);
    if (!all.ok()) return all.status();
    for (int member = 0; member < group.size(); ++member) {
        const CallRecord& theirs = all.value()[static_cast<std::size_t>(member)];
        if (theirs.magic != CallRecord::magic_value || theirs.sequence != mine.sequence)
            return {Code::mismatch,
                    fmt::format("PE {} of the team {} does not make this call: it is in another collective call",
                                member, group_name)};
    }
    const MemberCall first{0, all.value()[0]};
    for (int member = 1; member < group.size(); ++member) {
        const MemberCall other{member, all.value()[static_cast<std::size_t>(member)]};
        if (Status done = compare(group_name, first, other); !done.ok()) return done;
    }
    for (int member = 0; member < group.size(); ++member) {
        const auto code = static_cast<Code>(all.value()[static_cast<std::size_t>(member)].code);
        if (code != Code::ok)
            return {Code::mismatch, fmt::format("PE {} of the team {} rejected its own arguments ({})", member,
                                                group_name, name_of(code))};
    }
    return {};
}

}  // namespace npushmem::coll
