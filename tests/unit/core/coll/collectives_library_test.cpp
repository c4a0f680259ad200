// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/collectives_library.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "core/coll/collectives.hpp"
#include "npushmem/testing/fake_collectives.hpp"
#include "tests/fakes/thread_group.hpp"

namespace npushmem::coll {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

using fakes::FakeCollectives;
using fakes::FakeCollectivesJob;
using fakes::ThreadGroup;
using Threads = fakes::ThreadGroupWorld;

constexpr int members = 3;
constexpr std::uint64_t library_dest_at = Threads::room / 2;

// Reports one PE as dead.
class OneDead final : public Liveness {
public:
    std::optional<int> find_dead(const PeRange& pes) override {
        for (int i = 0; i < pes.count; ++i)
            if (pes.at(i) == dead) return dead;
        return std::nullopt;
    }
    std::atomic<int> dead{-1};
};

// The members of a group as threads, each with the fake library.
class LibraryJob {
public:
    std::shared_ptr<FakeCollectivesJob> fake = std::make_shared<FakeCollectivesJob>();
    std::string rules;
    std::chrono::milliseconds timeout{0};
    OneDead liveness;
    std::vector<std::string> logged;

    // Runs body(group, library team, own memory) for each member in a thread; returns the counts of member 0.
    std::string run(const std::function<void(ThreadGroup&, LibraryTeam&, std::byte*)>& body) {
        Threads world(members, true);
        const auto tuning = barrier::Tuning::parse(rules, "rules.txt");
        EXPECT_TRUE(tuning.ok()) << tuning.status().message();
        std::string counts;
        std::vector<std::jthread> threads;
        for (int i = 0; i < members; ++i)
            threads.emplace_back([&, i] {
                const Waiter waiter(world.waiter.budget(), world.os, world.counters, &liveness);
                ThreadGroup group(world, i);
                auto instance = std::make_unique<FakeCollectives>(fake, i);
                const auto capabilities = LibraryCapabilities::of(*instance);
                CollectivesLibrary library("fake", std::move(instance), capabilities, tuning.value(),
                                           [this](const std::string& line) {
                                               const std::lock_guard guard(lock_);
                                               logged.push_back(line);
                                           });
                {
                    LibraryTeam team(library, group, {{0, 1, 2}, 7, {.members = members}, "of threads"}, waiter,
                                     timeout);
                    group.use_library(&team);
                    body(group, team, group.mapped_address(i, 0));
                }
                if (i == 0) counts = library.describe_counts();
            });
        threads.clear();
        return counts;
    }

private:
    std::mutex lock_;
};

std::uint32_t* words_in(std::byte* memory, std::uint64_t offset) {
    return reinterpret_cast<std::uint32_t*>(memory + offset);
}

void fill(ThreadGroup& group, std::byte* memory) {
    for (std::uint64_t i = 0; i < 3000; ++i) {
        words_in(memory, 0)[i] = static_cast<std::uint32_t>(group.index()) * 1000003U + static_cast<std::uint32_t>(i);
        words_in(memory, library_dest_at)[i] = 0;
    }
    ASSERT_TRUE(group.sync().ok());
}

using Collective = std::function<Status(ThreadGroup&)>;

std::vector<Collective> every_collective(std::uint64_t count) {
    return {[=](ThreadGroup& group) { return broadcast(group, library_dest_at, 0, count * 4, 1, true); },
            [=](ThreadGroup& group) { return broadcast(group, library_dest_at, 0, count * 4, 2, false); },
            [=](ThreadGroup& group) {
                return collect(group, library_dest_at, 0, static_cast<unsigned>(group.index()) * count * 4,
                               Threads::room / 2);
            },
            [=](ThreadGroup& group) { return fcollect(group, library_dest_at, 0, count * 4); },
            [=](ThreadGroup& group) { return alltoall(group, library_dest_at, 0, count * 4); },
            [=](ThreadGroup& group) {
                return alltoalls(group, library_dest_at, 0, {1, 1, count, 4});
            },
            [=](ThreadGroup& group) {
                return reduce(group, library_dest_at, 0, count, ReduceOperation::sum, ReduceElement::i32);
            },
            [=](ThreadGroup& group) { return reduce(group, 0, 0, count, ReduceOperation::max, ReduceElement::i64); },
            [=](ThreadGroup& group) {
                return reduce(group, library_dest_at, 0, count, ReduceOperation::xor_,
                              ReduceElement::u8);  // not in the fake
            },
            [=](ThreadGroup& group) {
                return reduce_scatter(group, library_dest_at, 0, count, ReduceOperation::sum, ReduceElement::i32);
            },
            [=](ThreadGroup& group) {
                return reduce_scatter(group, 0, 0, count, ReduceOperation::min, ReduceElement::i32);
            },
            [=](ThreadGroup& group) { return scan(group, library_dest_at, 0, count, true, ReduceElement::i32); }};
}

TEST(CollectivesOfALibrary, GiveTheResultsOfOurs) {
    LibraryJob job;
    const std::string counts = job.run([](ThreadGroup& group, LibraryTeam& team, std::byte* memory) {
        for (const std::uint64_t count : {1U, 300U})
            for (const Collective& collective : every_collective(count)) {
                std::vector<std::byte> ours;
                for (LibraryTeam* library : {static_cast<LibraryTeam*>(nullptr), &team}) {
                    group.use_library(library);
                    fill(group, memory);
                    ASSERT_TRUE(collective(group).ok());
                    ASSERT_TRUE(group.sync().ok());
                    if (library == nullptr)
                        ours.assign(memory, memory + Threads::room);
                    else
                        EXPECT_EQ(std::memcmp(ours.data(), memory, Threads::room), 0) << count;
                }
            }
    });
    EXPECT_EQ(counts,
              "collectives of this PE: broadcast 4 fake, 0 npushmem; collect 2 fake, 0 npushmem; fcollect 2 fake, 0 "
              "npushmem; alltoall 4 fake, 0 npushmem; reduce 4 fake, 2 npushmem; reducescatter 4 fake, 0 npushmem");
    EXPECT_EQ(job.fake->teams, 0);
}

// A library's call does not synchronise, so that another member may still write the dest of the call before.
Status fcollect_of(ThreadGroup& group, std::uint64_t bytes) {
    Status ready = group.sync();
    return ready.ok() ? fcollect(group, library_dest_at, 0, bytes) : ready;
}

TEST(CollectivesOfALibrary, TheTuningFileDividesTheCallsBySizeAndTheProgramOverrulesIt) {
    LibraryJob job;
    job.rules = "fcollect * * * 0-99 npushmem\nfcollect * * * 200- fake\nfcollect * * * 100- another\n";
    const std::string counts = job.run([](ThreadGroup& group, LibraryTeam& team, std::byte*) {
        for (const std::uint64_t bytes : {8U, 99U, 100U, 200U}) ASSERT_TRUE(fcollect_of(group, bytes).ok());
        team.select(LibraryTeam::Selection::library);
        for (int i = 0; i < 10; ++i) ASSERT_TRUE(fcollect_of(group, 8).ok());
        team.select(LibraryTeam::Selection::own);
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(fcollect_of(group, 200).ok());
    });
    EXPECT_THAT(counts, HasSubstr("fcollect 11 fake, 103 npushmem"));
}

TEST(CollectivesOfALibrary, ATeamThatOneMemberCannotCreateUsesOurs) {
    LibraryJob job;
    job.fake->create_failures[1] = {Code::unsupported, "no memory of this kind"};
    const std::string counts = job.run([](ThreadGroup& group, LibraryTeam& team, std::byte*) {
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(fcollect_of(group, 8).ok());
        EXPECT_FALSE(team.has_barrier());
    });
    EXPECT_THAT(counts, HasSubstr("fcollect 0 fake, 3 npushmem"));
    EXPECT_EQ(job.fake->teams, 0);
    ASSERT_EQ(job.logged.size(), 3U);
    EXPECT_THAT(job.logged, Each(AllOf(HasSubstr("the team of threads"), HasSubstr("own collectives"),
                                       HasSubstr("member 1: no memory of this kind"))));
}

TEST(CollectivesOfALibrary, ACallThatTheLibraryRefusesUsesOurs) {
    LibraryJob job;
    job.fake->is_unsupported = [](const npushmem_coll_call& call) { return call.count > 100; };
    const std::string counts = job.run([](ThreadGroup& group, LibraryTeam&, std::byte*) {
        for (const std::uint64_t bytes : {100U, 101U, 8U}) ASSERT_TRUE(fcollect_of(group, bytes).ok());
    });
    EXPECT_THAT(counts, HasSubstr("fcollect 2 fake, 1 npushmem"));
}

TEST(CollectivesOfALibrary, ATimeoutAbandonsTheCallAndLaterOnesFailAtOnce) {
    LibraryJob job;
    job.timeout = std::chrono::milliseconds{50};
    job.fake->is_stuck = true;
    (void)job.run([](ThreadGroup& group, LibraryTeam& team, std::byte*) {
        for (int i = 0; i < 3; ++i) {
            const Status late = fcollect_of(group, 8);
            EXPECT_EQ(late.code(), Code::timeout);
            EXPECT_THAT(late.message(), AllOf(HasSubstr("fcollect by fake"), HasSubstr("another library")));
        }
        EXPECT_EQ(team.failure().code(), Code::timeout);
    });
    EXPECT_EQ(job.fake->abandoned, 3);  // one of each member
}

TEST(CollectivesOfALibrary, ADeadMemberEndsTheWait) {
    LibraryJob job;
    job.fake->is_stuck = true;
    job.liveness.dead = 2;
    (void)job.run([](ThreadGroup& group, LibraryTeam&, std::byte*) {
        const Status dead = fcollect_of(group, 8);
        EXPECT_EQ(dead.code(), Code::peer_dead);
        EXPECT_THAT(dead.message(), HasSubstr("PE 2"));
    });
}

TEST(CollectivesOfALibrary, AFailureOfTheLibraryIsReportedWithItsMessage) {
    LibraryJob job;
    job.fake->result = [](int pe, std::uint32_t) {
        return pe == 1 ? Status{Code::system, "a cable is cut"} : Status{};
    };
    (void)job.run([](ThreadGroup& group, LibraryTeam&, std::byte*) {
        const Status done = fcollect_of(group, 8);
        EXPECT_EQ(done.code(), group.index() == 1 ? Code::system : Code::ok);
        EXPECT_EQ(done.message(), group.index() == 1 ? "fcollect by fake: a cable is cut" : "");
    });
}

// A library whose members exchange different things: all must give up, at the same step.
class WrongExchanges final : public FakeCollectives {
public:
    enum class Kind { bytes, number, too_long };
    WrongExchanges(std::shared_ptr<FakeCollectivesJob> job, int pe, Kind kind)
        : FakeCollectives(std::move(job), pe), pe_(pe), kind_(kind) {}

    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override {
        const std::uint64_t bytes = kind_ == Kind::too_long            ? NPUSHMEM_COLL_EXCHANGE_BYTES + 1
                                    : kind_ == Kind::bytes && pe_ == 1 ? 4
                                                                       : 8;
        const int number = kind_ == Kind::number && pe_ == 1 ? 1 : 2;
        const std::vector<std::byte> mine(bytes);
        std::vector<std::byte> all(bytes * static_cast<unsigned>(team.size));
        for (int i = 0; i < number; ++i)
            if (Status done = gather_from_members(team, mine, all); !done.ok()) return done;
        return std::uint64_t{1};
    }
    void destroy_team(std::uint64_t) override {}

private:
    int pe_;
    Kind kind_;
};

TEST(CollectivesOfALibrary, MembersThatExchangeDifferentDataAllUseOurs) {
    for (const auto kind :
         {WrongExchanges::Kind::bytes, WrongExchanges::Kind::number, WrongExchanges::Kind::too_long}) {
        Threads world(members, true);
        const auto fake = std::make_shared<FakeCollectivesJob>();
        const barrier::Tuning tuning;
        std::vector<std::jthread> threads;
        for (int i = 0; i < members; ++i)
            threads.emplace_back([&, i] {
                ThreadGroup group(world, i);
                auto instance = std::make_unique<WrongExchanges>(fake, i, kind);
                const auto capabilities = LibraryCapabilities::of(*instance);
                CollectivesLibrary library("fake", std::move(instance), capabilities, tuning,
                                           [](const std::string&) {});
                LibraryTeam team(library, group, {{0, 1, 2}, 7, {.members = members}, "of threads"}, world.waiter,
                                 std::chrono::seconds{60});
                group.use_library(&team);
                for (int call = 0; call < 3; ++call) EXPECT_TRUE(fcollect_of(group, 8).ok());
                EXPECT_FALSE(team.has_barrier());
                EXPECT_THAT(library.describe_counts(), HasSubstr("fcollect 0 fake, 3 npushmem"));
            });
    }
}

TEST(LibraryCapabilities, AreThoseThatAllHave) {
    const auto fake = std::make_shared<FakeCollectivesJob>();
    auto capabilities = LibraryCapabilities::of(FakeCollectives(fake, 0));
    EXPECT_TRUE(capabilities.has(NPUSHMEM_COLL_REDUCE, NPUSHMEM_COLL_SUM, NPUSHMEM_COLL_F32));
    EXPECT_FALSE(capabilities.has(NPUSHMEM_COLL_REDUCE, NPUSHMEM_COLL_XOR, NPUSHMEM_COLL_F32));
    EXPECT_FALSE(capabilities.has(NPUSHMEM_COLL_REDUCE, NPUSHMEM_COLL_SUM, NPUSHMEM_COLL_F16));
    EXPECT_TRUE(capabilities.has(NPUSHMEM_COLL_BARRIER, 0, 0));
    EXPECT_THAT(capabilities.describe(), AllOf(HasSubstr("barrier, broadcast, collect, fcollect, alltoall, reduce"),
                                               HasSubstr("and:2"), HasSubstr("sum:4")));
    capabilities.intersect(LibraryCapabilities{});
    EXPECT_FALSE(capabilities.has(NPUSHMEM_COLL_BARRIER, 0, 0));
    EXPECT_EQ(capabilities.describe(), "nothing");
}

}  // namespace
}  // namespace npushmem::coll
