// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/start_exchange.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "core/base/hash.hpp"
#include "npushmem/testing/fake_bootstrap.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

class CountingBootstrap final : public Bootstrap {
public:
    CountingBootstrap(std::shared_ptr<fakes::FakeJob> job, int rank) : inner_(std::move(job), rank) {}

    [[nodiscard]] int rank() const override { return inner_.rank(); }
    [[nodiscard]] int nranks() const override { return inner_.nranks(); }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        ++rounds;
        return inner_.allgather(send, receive);
    }
    Status barrier() override {
        ++rounds;
        return inner_.barrier();
    }
    int rounds = 0;

private:
    fakes::FakeBootstrap inner_;
};

std::uint64_t hash_of(const auto& plain) { return hash_bytes({reinterpret_cast<const char*>(&plain), sizeof plain}); }

// The result of PE 0 of three that differ as `change` says: the failure, or the host names.
std::string exchange(const std::function<void(int pe, OwnRecord& own)>& change) {
    const auto job = std::make_shared<fakes::FakeJob>(3);
    const auto made = make_pe_record(Config::read(FakeEnvironment{}).value().settings(), 7, {});
    EXPECT_TRUE(made.ok());
    std::string result;
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < job->nranks(); ++pe)
        threads.emplace_back([&, pe] {
            fakes::FakeBootstrap bootstrap(job, pe);
            OwnRecord own = made.value();
            std::strcpy(own.common.facts.host_name, "here");
            own.record.process = 100 + pe;
            change(pe, own);
            own.record.common_hash = hash_of(own.common);
            const auto all = exchange_pe_records(bootstrap, own);
            if (pe != 0) return;
            if (!all.ok()) result = all.status().message();
            for (std::size_t i = 0; i < 3 && all.ok(); ++i) result += all.value().common_of(i).facts.host_name;
        });
    threads.clear();
    return result;
}

TEST(ExchangePeRecords, DifferencesNameBothPes) {
    const auto change_of = [](int which, const std::function<void(OwnRecord & own)>& change) {
        return exchange([&](int pe, OwnRecord& own) {
            if (pe == which) change(own);
        });
    };
    using ::testing::HasSubstr;
    using ::testing::StartsWith;
    EXPECT_THAT(change_of(2, [](OwnRecord& own) { own.common.settings.tuning = 8; }),
                HasSubstr("PE 2 (process 102 on here) reads another NPUSHMEM_COLL_TUNING_FILE than PE 0"));
    EXPECT_THAT(change_of(2, [](OwnRecord& own) { std::strcpy(own.common.settings.barrier, "tree"); }),
                HasSubstr("NPUSHMEM_BARRIER_ALGO='tree', PE 0 has 'auto'"));
    EXPECT_THAT(change_of(2, [](OwnRecord& own) { std::strcpy(own.common.settings.coll_library, "mpi"); }),
                HasSubstr("NPUSHMEM_COLL_LIBRARY='mpi', PE 0 has"));
    EXPECT_THAT(change_of(2, [](OwnRecord& own) { own.common.settings.symmetric_bytes = 4096; }),
                HasSubstr("NPUSHMEM_SYMMETRIC_SIZE=4096, PE 0 has 1073741824"));
    EXPECT_THAT(change_of(1, [](OwnRecord& own) { own.common.settings.check = 1; }),
                HasSubstr("NPUSHMEM_CHECK=1, PE 0 has 0"));
    EXPECT_THAT(change_of(1, [](OwnRecord& own) { own.common.settings.survives_deaths = 1; }),
                HasSubstr("NPUSHMEM_ON_PEER_DEATH=survive, PE 0 has job"));
    EXPECT_THAT(change_of(1, [](OwnRecord& own) { own.record.version[1] += 1; }),
                StartsWith("PE 1 (process 101) runs npushmem"));
    EXPECT_THAT(change_of(1, [](OwnRecord& own) { own.record.bytes = 1; }),
                HasSubstr("PE 1 runs an incompatible npushmem (record of 1 bytes"));
}

TEST(ExchangePeRecords, FactsThatDifferAreThoseOfEachPe) {
    EXPECT_EQ(exchange([](int, OwnRecord&) {}), "hereherehere");
    EXPECT_EQ(exchange([](int pe, OwnRecord& own) { own.common.facts.host_name[0] = static_cast<char>('a' + pe); }),
              "aereberecere");
}

TEST(ExchangePeRecords, EqualRecordsTakeOneRound) {
    const auto rounds_with = [](int different) {
        const auto job = std::make_shared<fakes::FakeJob>(3);
        const OwnRecord made = make_pe_record(Config::read(FakeEnvironment{}).value().settings(), 7, {}).value();
        std::atomic<int> rounds{0};
        {
            std::vector<std::jthread> threads;
            for (int pe = 0; pe < job->nranks(); ++pe)
                threads.emplace_back([&, pe] {
                    CountingBootstrap bootstrap(job, pe);
                    OwnRecord own = made;
                    own.record.process = 100 + pe;
                    if (pe == different) own.common.facts.cpu_quota = 1.5;
                    own.record.common_hash = hash_of(own.common);
                    const auto all = exchange_pe_records(bootstrap, own);
                    ASSERT_TRUE(all.ok()) << all.status().message();
                    EXPECT_EQ(all.value().common.size(), different < 0 ? 1U : 3U);
                    for (int i = 0; i < 3; ++i) {
                        const auto each = static_cast<std::size_t>(i);
                        EXPECT_EQ(all.value().pes[each].process, 100 + i);
                        EXPECT_EQ(all.value().common_of(each).facts.cpu_quota == 1.5, i == different);
                    }
                    if (pe == 0) rounds = bootstrap.rounds;
                });
        }
        return rounds.load();
    };
    EXPECT_EQ(rounds_with(-1), 1);
    EXPECT_EQ(rounds_with(2), 2);
}

// Gathers strings of these lengths; every byte of PE i's is i. Returns the number of rounds. Row 0: the PEs share no
// memory.
int gather_strings(const std::vector<std::size_t>& lengths, std::size_t row = 0) {
    Bytes rows(row * lengths.size());
    const auto job = std::make_shared<fakes::FakeJob>(static_cast<int>(lengths.size()));
    std::atomic<int> rounds_of_first{0};
    {
        std::vector<std::jthread> threads;
        for (int pe = 0; pe < job->nranks(); ++pe)
            threads.emplace_back([&, pe] {
                CountingBootstrap bootstrap(job, pe);
                const auto of = [&](int i) { return Bytes(lengths[static_cast<std::size_t>(i)], std::byte(i)); };
                const auto all = rows.empty() ? GatheredBytes::gather(bootstrap, of(pe))
                                              : GatheredBytes::gather_in(rows, bootstrap, of(pe));
                ASSERT_TRUE(all.ok()) << all.status().message();
                for (int i = 0; i < job->nranks(); ++i)
                    EXPECT_TRUE(std::ranges::equal(all.value().of(i), of(i))) << "PE " << pe << " of PE " << i;
                if (pe == 0) rounds_of_first = bootstrap.rounds;
            });
    }
    return rounds_of_first;
}

TEST(GatheredBytes, FollowTheirLengths) {
    EXPECT_EQ(gather_strings({0, 0}), 1);
    EXPECT_EQ(gather_strings({0, 1}), 2);
    EXPECT_EQ(gather_strings({3, 5000, 100}), 2);
}

TEST(GatheredBytes, AreReadInSharedRowsThatHaveRoomForThem) {
    EXPECT_EQ(gather_strings({0, 0, 0}, 160), 1);
    EXPECT_EQ(gather_strings({3, 0, 156, 7}, 160), 1);
    EXPECT_EQ(gather_strings({1, 157, 0}, 160), 2);
    EXPECT_EQ(gather_strings({5000}, 160), 2);
}

TEST(GatheredBytes, APrivateCopyOutlivesTheSharedRows) {
    fakes::FakeBootstrap bootstrap(std::make_shared<fakes::FakeJob>(1), 0);
    const Bytes mine(5, std::byte{7});
    Bytes rows(16);
    auto all = GatheredBytes::gather_in(rows, bootstrap, mine);
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_TRUE(all.value().is_shared());
    all.value().unshare();
    std::ranges::fill(rows, std::byte{});
    EXPECT_FALSE(all.value().is_shared());
    EXPECT_TRUE(std::ranges::equal(all.value().of(0), mine));
}

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
