// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/shrink_agreement.hpp"

#include <gmock/gmock.h>

#include <utility>

#include "tests/unit/core/team/shrink_explorer.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;
using Phase = ShrinkRecord::Phase;

class SlotsOfOne final : public ShrinkSlots {
public:
    TeamSlotSet free() override { return free_; }
    Claim claim(int slot, const MemberSet& /*failed*/) override {
        free_[0] &= ~(std::uint64_t{1} << slot);
        return {SlotClaim::claimed, true};
    }
    TeamSlotSet free_{0xF0};
};

ShrinkRecord record_of(int size, Phase phase, std::initializer_list<int> failed = {}) {
    ShrinkRecord record(size);
    record.call = 1;
    record.phase = phase;
    for (const int member : failed) record.failed.add(member);
    record.free[0] = 0x30;
    return record;
}

TEST(ShrinkAgreement, TakesTheFirstCommonSlot) {
    SlotsOfOne slots;
    ShrinkAgreement one(2, 0, 1);
    ASSERT_TRUE(one.advance(slots));
    EXPECT_EQ(one.record().phase, Phase::proposed);
    EXPECT_FALSE(one.advance(slots));
    EXPECT_TRUE(one.awaits(1));
    one.learn(1, record_of(2, Phase::proposed));
    ASSERT_TRUE(one.advance(slots));
    EXPECT_EQ(one.record().phase, Phase::claimed);
    EXPECT_EQ(one.record().slot, 4);
    one.learn(1, record_of(2, Phase::proposed));
    EXPECT_FALSE(one.advance(slots)) << "the other one has not claimed yet";
    one.learn(1, record_of(2, Phase::claimed));
    ASSERT_TRUE(one.advance(slots));
    EXPECT_TRUE(one.has_decided());
    EXPECT_EQ(one.record().claim, SlotClaim::claimed);
}

TEST(ShrinkAgreement, BeginsAgainWithEachFailure) {
    SlotsOfOne slots;
    ShrinkAgreement one(3, 0, 1);
    ASSERT_TRUE(one.advance(slots));
    one.learn(1, record_of(3, Phase::proposed));
    one.learn(2, record_of(3, Phase::proposed, {1}));
    ASSERT_TRUE(one.advance(slots));
    EXPECT_EQ(one.record().phase, Phase::proposed);
    EXPECT_TRUE(one.record().failed.has(1));
    EXPECT_FALSE(one.awaits(1));
    one.learn_failed(2);
    while (one.advance(slots)) {
    }
    EXPECT_TRUE(one.has_decided()) << "alone";
    EXPECT_EQ(one.record().slot, 4);
}

TEST(ShrinkAgreement, IgnoresRecordsOfOtherCallsButTheLastOfAMember) {
    SlotsOfOne slots;
    ShrinkAgreement one(2, 0, 2);
    ASSERT_TRUE(one.advance(slots));
    ShrinkRecord earlier = record_of(2, Phase::decided, {0});
    one.learn(1, earlier);
    EXPECT_FALSE(one.has_decided() || one.is_excluded());
    earlier.has_left = true;
    one.learn(1, earlier);
    EXPECT_FALSE(one.awaits(1));
}

TEST(ShrinkAgreement, AMemberThatLeavesTheCallUndecidedHasFailed) {
    SlotsOfOne slots;
    ShrinkAgreement one(3, 0, 1);
    ASSERT_TRUE(one.advance(slots));
    ShrinkRecord left = record_of(3, Phase::claimed, {0});
    left.has_left = true;
    one.learn(1, left);
    EXPECT_FALSE(one.is_excluded()) << "its set counts no more";
    EXPECT_TRUE(one.record().failed.has(1));
    ShrinkRecord decided = record_of(3, Phase::decided, {1});
    decided.has_left = true;
    one.learn(2, decided);
    EXPECT_TRUE(one.has_decided()) << "a decision counts";
    EXPECT_FALSE(one.record().has_left) << "this member goes on";
}

TEST(ShrinkAgreement, ALaterCallOfAMemberHasBegunWithoutThisOne) {
    SlotsOfOne slots;
    ShrinkAgreement one(2, 0, 1);
    ASSERT_TRUE(one.advance(slots));
    ShrinkRecord later = record_of(2, Phase::proposed);
    later.call = 3;
    one.learn(1, later);
    EXPECT_TRUE(one.is_excluded());
    ShrinkRecord none(2);  // of a member that ends before its first call of this parity
    none.call = ~std::uint64_t{0};
    none.has_left = true;
    ShrinkAgreement other(2, 0, 1);
    ASSERT_TRUE(other.advance(slots));
    other.learn(1, none);
    EXPECT_FALSE(other.is_excluded());
    EXPECT_FALSE(other.awaits(1));
}

TEST(ShrinkAgreement, ReportsThatTheOthersCountThisMemberAmongTheDead) {
    SlotsOfOne slots;
    ShrinkAgreement one(2, 0, 1);
    ASSERT_TRUE(one.advance(slots));
    one.learn(1, record_of(2, Phase::decided, {0}));
    EXPECT_TRUE(one.is_excluded());
    EXPECT_FALSE(one.advance(slots));
}

TEST(ShrinkAgreement, HandlesTeamsOfManyWords) {
    SlotsOfOne slots;
    ShrinkAgreement one(200, 3, 1);
    ASSERT_TRUE(one.advance(slots));
    for (int member = 0; member < 200; ++member)
        if (member != 3 && member != 150) one.learn_failed(member);
    ASSERT_TRUE(one.advance(slots));
    EXPECT_TRUE(one.awaits(150));
    ShrinkRecord theirs = one.record();
    theirs.free[0] = 0;
    one.learn(150, theirs);
    ASSERT_TRUE(one.advance(slots));
    EXPECT_EQ(one.record().slot, -1) << "no slot in common";
}

struct Case {
    int members;
    int crashes;
    bool leaves;
    int failures = 0;
    int calls = 1;
};
void PrintTo(const Case& one, std::ostream* out) {
    *out << one.members << " members, " << one.crashes << " crashes, " << one.failures << " failures, " << one.calls
         << " calls" << (one.leaves ? ", leaving" : "");
}

class ShrinkExploration : public ::testing::TestWithParam<Case> {
protected:
    ShrinkExploration() {
        config.members = GetParam().members;
        config.max_crashes = GetParam().crashes;
        config.leaves = GetParam().leaves;
        config.max_failures = GetParam().failures;
        config.calls = GetParam().calls;
    }
    ShrinkExplorer::Config config;
};

TEST_P(ShrinkExploration, TheLivingDecideAlikeInEveryInterleaving) {
    const auto result = ShrinkExplorer(config).run();
    EXPECT_EQ(result.fault, "");
    EXPECT_GE(result.ends, 1U);
    RecordProperty("states", static_cast<int>(result.states));
}

INSTANTIATE_TEST_SUITE_P(All, ShrinkExploration,
                         ::testing::Values(Case{2, 0, false}, Case{2, 1, true}, Case{3, 0, false}, Case{3, 1, true},
                                           Case{3, 2, false}, Case{3, 2, true}, Case{4, 0, false}, Case{2, 0, false, 1},
                                           Case{3, 0, false, 2}, Case{3, 1, true, 1}, Case{2, 1, true, 1, 4},
                                           Case{3, 1, false, 1, 2}));
INSTANTIATE_TEST_SUITE_P(CrashesOfFour, ShrinkExploration,
                         ::testing::Values(Case{4, 1, false}, Case{4, 2, false}, Case{4, 3, false}, Case{4, 3, true}));

// A member that finds a living one dead excludes it; the others may continue without it for several calls before it
// reads their records.
TEST(ShrinkExplorer, AnExcludedMemberWaitsForNobodyAndNobodyForIt) {
    for (const auto& [members, calls] : {std::pair{2, 4}, std::pair{3, 3}}) {
        ShrinkExplorer::Config config;
        config.members = members;
        config.calls = calls;
        config.max_errors = 1;
        config.may_exclude = true;
        const auto result = ShrinkExplorer(config).run();
        EXPECT_EQ(result.fault, "");
        EXPECT_GE(result.ends, 1U);
        RecordProperty("states", static_cast<int>(result.states));
    }
}

// Another thread of member 0 claims the first slot; member 1 has no memory for the second one.
TEST(ShrinkExplorer, AFailedClaimFailsForAll) {
    ShrinkExplorer::Config config;
    config.members = 3;
    config.max_crashes = 2;
    config.claim = [](int member, int slot) {
        const SlotClaim claim = member == 0 && slot == 0   ? SlotClaim::contended
                                : member == 1 && slot == 1 ? SlotClaim::unavailable
                                                           : SlotClaim::claimed;
        return ShrinkSlots::Claim{claim, member != 2};
    };
    config.numbered = true;
    EXPECT_EQ(ShrinkExplorer(config).run().fault, "");
}

TEST(ShrinkExplorer, FindsPlantedFaults) {
    ShrinkExplorer::Config config;
    config.members = 3;
    config.max_crashes = 2;
    ShrinkExplorer::Config planted = config;
    planted.max_errors = 1;
    EXPECT_THAT(ShrinkExplorer(planted).run().fault, HasSubstr("lives"));
    planted = config;
    planted.decisions_are_lost = true;
    EXPECT_THAT(ShrinkExplorer(planted).run().fault, HasSubstr("waits for ever"));
    planted = config;
    planted.sets_are_ignored = true;
    EXPECT_THAT(ShrinkExplorer(planted).run().fault, HasSubstr("live and decide differently"));
    planted = config;
    planted.decides_early = true;
    EXPECT_NE(ShrinkExplorer(planted).run().fault, "");
}

}  // namespace
}  // namespace npushmem
