// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/formation_protocol.hpp"

#include <gtest/gtest.h>

namespace npushmem {
namespace {

TEST(FormationProtocol, AnIdContainsItsLeaderAndItsNumber) {
    const std::uint64_t id = make_team_id(1000000, 77);
    EXPECT_EQ(leader_of_team(id), 1000000);
    EXPECT_EQ(number_of_team(id), 77U);
    EXPECT_EQ(leader_of_team(0), -1);
}

TEST(FormationProtocol, AVoteIsReadAsItWasWritten) {
    const TeamSlotSet free{1, ~std::uint64_t{0}, 1ULL << 63, 0x123456789abcdefULL};
    TeamMessage message;
    FormationVote{SlotClaim::contended, true, free}.add_to(message);
    const FormationVote vote = FormationVote::parse(message);
    EXPECT_EQ(vote.claim, SlotClaim::contended);
    EXPECT_TRUE(vote.mapped);
    EXPECT_EQ(vote.free, free);
}

TEST(FormationProtocol, ARefusalIsReadAsItWasWritten) {
    const FormationRefusal refusal{FormationRefusal::Reason::sizes, {4, 0, 3, 1}};
    const Status read = FormationRefusal::parse(refusal.words(), 2).status(0, 8);
    EXPECT_EQ(read.code(), Code::mismatch);
    EXPECT_EQ(read.message(), refusal.status(0, 8).message());
    EXPECT_EQ(read.message(), "npes is 4 on PE 0 and 3 on PE 1; all must give the same");
}

TEST(FormationProtocol, ASurplusPeReadsItsOwnNumber) {
    const FormationRefusal refusal{FormationRefusal::Reason::surplus, {FormationRefusal::any_reader, 2}};
    EXPECT_EQ(FormationRefusal::parse(refusal.words(), 5).status(0, 8).message(),
              "PE 5 has arrived to form a team that already has all of its 2 PEs");
}

}  // namespace
}  // namespace npushmem
