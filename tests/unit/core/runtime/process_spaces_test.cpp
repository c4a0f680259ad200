// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/process_spaces.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"

namespace npushmem {
namespace {

// The process space of each PE, on machine 1 unless it is above 100.
PeRecords records_of(const std::vector<std::uint64_t>& spaces) {
    PeRecords records{std::vector<PeRecord>(spaces.size()), std::vector<CommonRecord>(spaces.size())};
    for (std::size_t pe = 0; pe < spaces.size(); ++pe) {
        records.common[pe].host.machine = spaces[pe] > 100 ? 2 : 1;
        records.common[pe].host.space = records.common[pe].process_space = spaces[pe];
    }
    return records;
}

struct Joined {
    std::vector<std::uint64_t> spaces;  // host.space of all PEs, as this one knows them
    bool received = false;
};

// Joins the PEs as threads; each host's first PE sends a descriptor. PE `alone` does not share.
std::vector<Joined> join(const std::vector<std::uint64_t>& spaces, int alone = -1) {
    const auto npes = static_cast<int>(spaces.size());
    auto job = std::make_shared<fakes::FakeJob>(npes);
    std::vector<Joined> out(spaces.size());
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < npes; ++pe)
        threads.emplace_back([&, pe] {
            fakes::FakeBootstrap bootstrap(job, pe);
            auto records = records_of(spaces);
            Settings settings;
            settings.share_between_containers = pe != alone;
            auto joined = ProcessSpaces::join(bootstrap, records, pe, settings);
            ASSERT_TRUE(joined.ok()) << joined.status().message();
            Joined& mine = out[static_cast<std::size_t>(pe)];
            for (const CommonRecord& record : records.common) mine.spaces.push_back(record.host.space);
            const FileDescriptor memory(::memfd_create("process spaces", MFD_CLOEXEC));
            ASSERT_TRUE(joined.value().send(memory.get()).ok());
            ASSERT_TRUE(bootstrap.barrier().ok());
            mine.received = joined.value().receives() && joined.value().receive().ok();
        });
    threads.clear();
    return out;
}

using Spaces = std::vector<std::uint64_t>;

TEST(ProcessSpaces, AreOneIfTheyMeetAtASocket) {
    const auto joined = join({7, 8, 7, 9, 101, 9});
    const bool received[] = {false, true, false, true, false, true};
    for (std::size_t pe = 0; pe < joined.size(); ++pe) {
        EXPECT_EQ(joined[pe].spaces, (Spaces{7, 7, 7, 7, 101, 7})) << pe;
        EXPECT_EQ(joined[pe].received, received[pe]) << pe;
    }
}

TEST(ProcessSpaces, StayApartIfAPeDoesNotShare) {
    const auto one = join({7, 8, 9}, 1);
    for (const Joined& each : one) EXPECT_EQ(each.spaces, (Spaces{7, 8, 7}));
    EXPECT_FALSE(one[1].received);
    EXPECT_TRUE(one[2].received);
    for (const Joined& each : join({7, 8, 9}, 0)) {
        EXPECT_EQ(each.spaces, (Spaces{7, 8, 9})) << "the first PE offers nothing";
        EXPECT_FALSE(each.received);
    }
}

TEST(ProcessSpaces, ExchangeNothingWithoutContainers) {
    for (const Joined& each : join({7, 7, 101})) {
        EXPECT_EQ(each.spaces, (Spaces{7, 7, 101}));
        EXPECT_FALSE(each.received);
    }
}

TEST(ProcessSpaces, OfDifferentUsersStayApart) {
    auto job = std::make_shared<fakes::FakeJob>(1);
    fakes::FakeBootstrap bootstrap(job, 0);
    auto records = records_of({7, 8});
    records.common[1].host.user = 1;
    ASSERT_TRUE(ProcessSpaces::join(bootstrap, records, 0, {}).ok()) << "no collective: the job has one rank";
    EXPECT_EQ(records.common[1].host.space, 8U);
}

}  // namespace
}  // namespace npushmem
