// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/start_exchange.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"

namespace npushmem {

namespace {

// Returns the result of each PE. `host_of` is indexed by PE; `maps` says whether one PE of a host maps another.
std::vector<SharingPes> find(const std::vector<unsigned>& host_of, const std::function<bool(int, int)>& maps) {
    std::vector<npushmem_host_id> ids(host_of.size());
    for (std::size_t pe = 0; pe < ids.size(); ++pe) ids[pe].machine = host_of[pe];
    const HostLayout layout(ids);
    const auto job = std::make_shared<fakes::FakeJob>(static_cast<int>(ids.size()));
    std::vector<SharingPes> found(ids.size());
    {
        std::vector<std::jthread> threads;
        for (int pe = 0; pe < job->nranks(); ++pe)
            threads.emplace_back([&, pe] {
                fakes::FakeBootstrap bootstrap(job, pe);
                std::vector<bool> mapped;
                for (const int other : layout.pes_of(layout.host_of(pe))) mapped.push_back(maps(pe, other));
                auto sharers = find_sharing_pes(bootstrap, layout, pe, std::move(mapped));
                EXPECT_TRUE(sharers.ok()) << sharers.status().message();
                found[static_cast<std::size_t>(pe)] = std::move(sharers).value();
            });
    }
    return found;
}

TEST(FindSharers, AreThePesOfTheHostHoweverTheyAreDealt) {
    const auto found = find({1, 2, 1, 1, 2}, [](int, int) { return true; });
    for (const int pe : {0, 2, 3}) EXPECT_EQ(found[static_cast<std::size_t>(pe)].pes, (std::vector<int>{0, 2, 3}));
    for (const int pe : {1, 4}) EXPECT_EQ(found[static_cast<std::size_t>(pe)].pes, (std::vector<int>{1, 4}));
    for (const SharingPes& one : found) {
        EXPECT_FALSE(one.all_map_all);
        EXPECT_TRUE(one.hosts_map);
    }
}

TEST(FindSharers, KnowOfAPairThatDoesNotMapOnAnotherHost) {
    for (const SharingPes& one : find({1, 2, 1, 2}, [](int pe, int other) { return pe != 3 || other != 1; }))
        EXPECT_FALSE(one.hosts_map);
}

TEST(FindSharers, AreAllPesOfAHostIfAllMapAll) {
    for (const SharingPes& one : find({1, 1, 1}, [](int, int) { return true; })) {
        EXPECT_EQ(one.pes, (std::vector<int>{0, 1, 2}));
        EXPECT_TRUE(one.all_map_all);
    }
}

TEST(FindSharers, AreOnlyThePeItselfIfItMapsNoOther) {
    const auto found = find({1, 1}, [](int, int) { return false; });
    EXPECT_EQ(found[0].pes, std::vector<int>{0});
    EXPECT_EQ(found[1].pes, std::vector<int>{1});
    EXPECT_FALSE(found[0].all_map_all);
}

// A host has more PEs than one round covers; the other host has fewer. The last PE maps no other.
TEST(FindSharers, OfAHostOfManyPes) {
    std::vector<unsigned> host_of(70, 1);
    host_of.push_back(2);
    const auto found = find(host_of, [](int a, int b) { return a != 69 && b != 69; });
    EXPECT_EQ(found[0].pes.size(), 69U);
    EXPECT_EQ(found[68].pes, found[0].pes);
    EXPECT_EQ(found[69].pes, std::vector<int>{69});
    EXPECT_EQ(found[70].pes, std::vector<int>{70});
}

}  // namespace

}  // namespace npushmem
