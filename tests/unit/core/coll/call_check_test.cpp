// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/call_check.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/fakes/thread_group.hpp"

namespace npushmem::coll {
namespace {

using ::testing::HasSubstr;

// Every member checks the record that `of` makes for it; returns their results.
std::vector<Status> check_all(int members, bool mapped, const std::function<CallRecord(int)>& of) {
    fakes::ThreadGroupWorld world(members, mapped);
    std::vector<Status> results(static_cast<std::size_t>(members));
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < members; ++i)
            threads.emplace_back([&, i] {
                fakes::ThreadGroup group(world, i);
                results[static_cast<std::size_t>(i)] = check_call(group, of(i), "t");
            });
    }
    return results;
}

CallRecord call(const char* function, std::uint64_t count = 4) {
    CallRecord record;
    record.name(function);
    record.sequence = 3;
    record.count = count;
    return record;
}

void expect_all(const std::function<CallRecord(int)>& of, Code code, const char* text) {
    for (const bool mapped : {true, false})
        for (const Status& status : check_all(3, mapped, of)) {
            EXPECT_EQ(status.code(), code) << status.message();
            EXPECT_THAT(status.message(), HasSubstr(text));
        }
}

TEST(CallCheck, MembersThatHaveSelectedDifferentMethodsFail) {
    const auto by = [](int member) {
        CallRecord record = call("f");
        record.select(member == 1 ? "npushmem:pull" : "auto");
        return record;
    };
    expect_all(by, Code::mismatch,
               "the choice of npushmemx_team_set_collectives is auto on PE 0 and npushmem:pull on PE 1 of the team t");
}

TEST(CallCheck, EqualCallsPass) {
    expect_all([](int) { return call("f"); }, Code::ok, "");
    expect_all([](int) { return call(""); }, Code::ok, "");
}

TEST(CallCheck, TheFirstDifferenceFailsAllMembers) {
    const auto third = [](auto change) {
        return [change](int member) {
            CallRecord record = call("f");
            if (member == 2) change(record);
            return record;
        };
    };
    const auto differs = [&](auto change, const char* text) { expect_all(third(change), Code::mismatch, text); };
    differs([](CallRecord& r) { r = call("g"); }, "the function is f on PE 0 and g on PE 2 of the team t");
    differs([](CallRecord& r) { r.count = 5; }, "count is 4 on PE 0 and 5 on PE 2");
    differs([](CallRecord& r) { r.root = 1; }, "root is 0 on PE 0 and 1 on PE 2");
    differs([](CallRecord& r) { r.dst = 2; }, "dst is 0 on PE 0 and 2 on PE 2");
    differs([](CallRecord& r) { r.sst = 2; }, "sst is 0 on PE 0 and 2 on PE 2");
    differs([](CallRecord& r) { r.dest = 64; }, "dest is offset 0x0 on PE 0 and offset 0x40 on PE 2");
    differs([](CallRecord& r) { r.source = 64; }, "source is offset 0x0 on PE 0 and offset 0x40 on PE 2");
    differs([](CallRecord& r) { r.members[2] = 9; }, "the team is 0 PEs from 0 by 0 on PE 0 and 9 PEs");
    differs([](CallRecord& r) { r.sequence = 2; }, "of the team t does not make this call");
    differs([](CallRecord& r) { r.magic = 0; }, "of the team t does not make this call");
    differs([](CallRecord& r) { r.code = static_cast<int>(Code::not_symmetric); }, "rejected its own arguments");
}

TEST(CallCheck, CountsMayDifferIfTheFunctionAllowsIt) {
    const auto collect = [](int member) {
        CallRecord record = call("collect", static_cast<std::uint64_t>(member));
        record.counts_differ = 1;
        if (member == 0) record.source = 999;  // of nothing
        return record;
    };
    expect_all(collect, Code::ok, "");
}

TEST(CallCheck, LongNamesAreCut) {
    CallRecord record;
    record.name(std::string(500, 'x'));
    EXPECT_EQ(std::string_view(record.function).size(), sizeof record.function - 1);
}

}  // namespace
}  // namespace npushmem::coll
