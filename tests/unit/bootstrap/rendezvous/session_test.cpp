// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/session.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace npushmem::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stage = Session::Stage;

const Moment start{std::chrono::hours{1}};

Join join_of(int rank, int nranks, int pid = 100) {
    Join made;
    made.who = {rank, pid + rank, "h"};
    made.nranks = nranks;
    made.version = {1, 2, 3};
    made.timeout = Milliseconds{2000};
    made.listener = Address::parse("127.0.0.1", static_cast<std::uint16_t>(4000 + rank)).value();
    return made;
}

// Rank r joins as member 10 + r.
Status enter(Session& session, const Join& join) {
    return session.join(join, static_cast<ConnectionId>(10 + join.who.rank), start);
}

Session full_session(int nranks) {
    Session session(1, join_of(0, nranks), start);
    for (int rank = 0; rank < nranks; ++rank) EXPECT_TRUE(enter(session, join_of(rank, nranks)).ok());
    return session;
}

TEST(Session, PassesFromFormingToLinkingToFinished) {
    Session session(1, join_of(1, 2), start);
    EXPECT_TRUE(enter(session, join_of(1, 2)).ok());
    EXPECT_EQ(session.stage(), Stage::forming);
    EXPECT_TRUE(enter(session, join_of(0, 2)).ok());
    EXPECT_EQ(session.stage(), Stage::linking);
    EXPECT_THAT(session.present(), ElementsAre(10, 11));
    session.leave(0);
    EXPECT_THAT(session.present(), ElementsAre(11));
    EXPECT_EQ(session.stage(), Stage::linking);
    session.leave(1);
    EXPECT_EQ(session.stage(), Stage::finished);
}

TEST(Session, AssignsParents) {
    const Session session = full_session(7);
    EXPECT_EQ(session.assignment(0).parent.rank, -1);
    EXPECT_EQ(session.assignment(1).parent.rank, 0);
    EXPECT_EQ(session.assignment(1).parent_listener.port(), 4000);
    EXPECT_EQ(session.assignment(2).parent.rank, 1) << "ranks 1 and 2 are one subtree";
    EXPECT_EQ(session.assignment(2).session, 1U);
}

// All ranks on one host, where rank 0 offers memory; `change` changes what one of them sends.
Assign assignment_after(int changed, const std::function<void(Join&)>& change) {
    const auto local_join = [&](int rank) {
        Join made = join_of(rank, 3);
        made.host = {7, 8, -1, 1000};
        if (rank == 0) made.memory = {100, 5, 21, 22, 4096};
        if (rank == changed) change(made);
        return made;
    };
    Session session(1, local_join(2), start);
    for (const int rank : {2, 0, 1}) EXPECT_TRUE(enter(session, local_join(rank)).ok());
    return session.assignment(1);
}

TEST(Session, RanksOfOneHostShareTheMemoryOfRank0) {
    const Assign shared = assignment_after(-1, {});
    EXPECT_EQ(shared.memory.process, 100);
    EXPECT_EQ(shared.memory.inode, 22U);
    EXPECT_EQ(shared.parent.rank, -1);
}

TEST(Session, RanksWithoutMemoryOrOnSeveralHostsAreConnectedInATree) {
    for (int rank = 0; rank < 3; ++rank) {
        for (const auto& change : {std::function([](Join& join) { ++join.host.machine; }),
                                   std::function([](Join& join) { ++join.host.space; }),
                                   std::function([](Join& join) { ++join.host.emulated; }),
                                   std::function([](Join& join) { ++join.host.user; })}) {
            const Assign tree = assignment_after(rank, change);
            EXPECT_EQ(tree.memory.process, 0) << rank;
            EXPECT_EQ(tree.parent.rank, 0) << rank;
        }
    }
    EXPECT_EQ(assignment_after(0, [](Join& join) { join.memory = {}; }).memory.process, 0);
}

TEST(Session, ReportsBothProcessesOfADuplicateRank) {
    Session session(1, join_of(0, 3), start);
    EXPECT_TRUE(enter(session, join_of(2, 3)).ok());
    const Status refused = enter(session, join_of(2, 3, 500));
    EXPECT_EQ(refused.message(), "rank 2 joined twice: pid 102 on host h, and pid 502 on host h");
    EXPECT_EQ(session.stage(), Stage::failed);
    EXPECT_EQ(session.failure().message(), refused.message());
}

TEST(Session, RefusesAnotherSizeRangeOrVersion) {
    Session size(1, join_of(0, 8), start);
    EXPECT_TRUE(enter(size, join_of(0, 8)).ok());
    EXPECT_THAT(
        enter(size, join_of(4, 9)).message(),
        HasSubstr("rank 4 (pid 104 on host h) says that the job has 9 ranks, rank 0 (pid 100 on host h) says 8"));
    EXPECT_EQ(size.stage(), Stage::failed);

    Session range(1, join_of(0, 8), start);
    EXPECT_EQ(enter(range, join_of(8, 8)).code(), Code::range);
    EXPECT_EQ(range.stage(), Stage::failed);

    Session version(1, join_of(0, 8), start);
    Join newer = join_of(3, 8);
    newer.version.minor = 9;
    EXPECT_THAT(enter(version, newer).message(),
                HasSubstr("runs npushmem 1.9.3, rank 0 (pid 100 on host h) runs 1.2.3"));
    EXPECT_EQ(version.stage(), Stage::failed);
}

TEST(Session, ReportsTheMissingRanks) {
    Session session(1, join_of(0, 8), start);
    for (const int rank : {0, 1, 2, 3, 4, 6}) EXPECT_TRUE(enter(session, join_of(rank, 8)).ok());
    EXPECT_EQ(session.overdue().message(), "ranks 5, 7 of 8 never joined within 2 s");
    Session linking = full_session(3);
    linking.leave(1);
    EXPECT_THAT(linking.overdue().message(), HasSubstr("ranks 0, 2 of 3 did not finish connecting"));
}

TEST(Session, UsesTheShortestTimeoutOfAllRanks) {
    Session session(1, join_of(0, 3), start);
    Join hasty = join_of(1, 3);
    hasty.timeout = Milliseconds{500};
    EXPECT_TRUE(enter(session, hasty).ok());
    EXPECT_EQ(session.deadline(), start + Milliseconds{500});
}

TEST(Session, ReportsItsFailureToRanksThatJoinLate) {
    Session session(1, join_of(0, 3), start);
    EXPECT_TRUE(enter(session, join_of(0, 3)).ok());
    session.fail({Code::peer_dead, "first"}, start);
    session.fail({Code::timeout, "second"}, start);
    EXPECT_FALSE(session.matches(join_of(0, 3)));
    ASSERT_TRUE(session.matches(join_of(1, 3)));
    EXPECT_EQ(enter(session, join_of(1, 3)).message(), "first");
    EXPECT_FALSE(session.matches(join_of(1, 3)));
    EXPECT_FALSE(session.is_expired(start));
    EXPECT_TRUE(session.is_expired(start + Milliseconds{2000}));
    EXPECT_EQ(enter(session, join_of(2, 3)).message(), "first");
    EXPECT_TRUE(session.is_expired(start)) << "everybody knows";
}

TEST(Job, StartsTheNextSessionForRanksThatHaveLeft) {
    Job job{Credentials{}};
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_TRUE(enter(job.session_for(join_of(rank, 2), start), join_of(rank, 2)).ok());
    Session& first = *job.find(1);
    first.leave(0);
    EXPECT_EQ(job.session_for(join_of(0, 2), start).number(), 2U) << "rank 0 is back before rank 1 has left";
    EXPECT_EQ(job.session_for(join_of(1, 2), start).number(), 2U) << "the same process cannot be in both";
    job.find(1)->leave(1);
    job.prune(start);
    EXPECT_EQ(job.find(1), nullptr);
    EXPECT_NE(job.find(2), nullptr);
}

TEST(Job, RejectsADuplicateRankWithoutFailingTheSession) {
    Job job{Credentials{}};
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_TRUE(enter(job.session_for(join_of(rank, 2), start), join_of(rank, 2)).ok());
    const Join intruder = join_of(1, 2, 900);
    Session& session = job.session_for(intruder, start);
    EXPECT_EQ(session.number(), 1U);
    EXPECT_THAT(enter(session, intruder).message(), HasSubstr("joined twice"));
    EXPECT_EQ(session.stage(), Stage::linking);
}

TEST(Job, FindsTheSessionThatTimedOut) {
    Job job{Credentials{}};
    EXPECT_TRUE(enter(job.session_for(join_of(0, 2), start), join_of(0, 2)).ok());
    EXPECT_EQ(job.find_timed_out(start), nullptr);
    EXPECT_NE(job.find_timed_out(start + Milliseconds{2000}), nullptr);
    EXPECT_TRUE(job.next_deadline().passed(start + Milliseconds{2000}));
    EXPECT_FALSE(job.next_deadline().passed(start + Milliseconds{1999}));
}

TEST(Job, FailsSessionsThatLackARankThatHasEnded) {
    Job job{Credentials{}};
    EXPECT_TRUE(enter(job.session_for(join_of(0, 3), start), join_of(0, 3)).ok());
    EXPECT_EQ(job.fail_for_ended_rank(start), nullptr);
    job.rank_ended(0, 3, "PE 0 ended");  // has joined: its connection reports the end
    job.rank_ended(1, 2, "PE 1 of another job ended");
    job.rank_ended(3, 3, "a rank that the job does not have ended");
    EXPECT_EQ(job.fail_for_ended_rank(start), nullptr);
    job.rank_ended(2, 3, "PE 2 ended");
    Session* const failed = job.fail_for_ended_rank(start);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->stage(), Stage::failed);
    EXPECT_THAT(failed->failure().message(), HasSubstr("PE 2 ended without calling npushmem_init"));
    EXPECT_EQ(job.fail_for_ended_rank(start), nullptr) << "once";
    EXPECT_FALSE(enter(job.session_for(join_of(1, 3), start), join_of(1, 3)).ok());
}

TEST(Job, ARankThatEndsAfterItJoinedDoesNotFailACompleteSession) {
    Job job{Credentials{}};
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_TRUE(enter(job.session_for(join_of(rank, 2), start), join_of(rank, 2)).ok());
    job.find(1)->leave(1);
    job.rank_ended(1, 2, "PE 1 ended");
    EXPECT_EQ(job.fail_for_ended_rank(start), nullptr);
    job.find(1)->leave(0);
    job.prune(start);
    EXPECT_TRUE(enter(job.session_for(join_of(0, 2), start), join_of(0, 2)).ok());
    EXPECT_NE(job.fail_for_ended_rank(start), nullptr) << "the next session waits for it";
}

TEST(Job, PrunesFailedSessions) {
    Job job{Credentials{}};
    for (int attempt = 0; attempt < 100; ++attempt) {
        Session& session = job.session_for(join_of(0, 2), start);
        EXPECT_TRUE(enter(session, join_of(0, 2)).ok());
        session.fail({Code::aborted, "again"}, start);
        job.prune(start);
    }
    EXPECT_EQ(job.find(84), nullptr);
    EXPECT_NE(job.find(100), nullptr);
}

}  // namespace
}  // namespace npushmem::rendezvous
