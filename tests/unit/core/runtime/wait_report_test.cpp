// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/wait_report.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace npushmem {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t one_second = 1'000'000'000;
constexpr std::int64_t report_time = 100 * one_second;

PeProgress waiting_pe(int pe, const char* call, std::uint64_t number, std::int64_t seconds,
                      const char* team = "world") {
    PeWait wait;
    wait.since = report_time - seconds * one_second;
    wait.call_number = number;
    set_text(wait.call, call);
    set_text(wait.what, "a barrier");
    set_text(wait.team, team);
    return {pe, true, PeState::running, number, wait};
}

PeProgress running_pe(int pe, std::uint64_t calls) { return {pe, true, PeState::running, calls, std::nullopt}; }

TEST(WaitReport, GroupsThePesThatAreInTheSameState) {
    const std::vector<PeProgress> pes{waiting_pe(0, "npushmem_barrier_all", 12, 60), running_pe(1, 11),
                                      waiting_pe(2, "npushmem_barrier_all", 12, 61)};
    EXPECT_THAT(describe_progress(pes, report_time),
                ElementsAre("PEs 0,2 have waited 61.0 s in npushmem_barrier_all #12 of the team world for a barrier",
                            "PE 1 has no long wait in the library"));
}

TEST(WaitReport, NamesTheObjectAndThePeOfAWaitOutsideOfCollectives) {
    PeProgress value = waiting_pe(0, "npushmem_long_wait_until", 0, 5, "");
    set_text(value.wait->what, "a value in symmetric memory");
    value.wait->object = 4160;
    PeProgress put = waiting_pe(1, "", 0, 3, "");
    set_text(put.wait->what, "a put");
    put.wait->peer = 7;
    EXPECT_THAT(describe_progress(std::vector{value, put}, report_time),
                ElementsAre("PE 0 has waited 5.0 s in npushmem_long_wait_until for a value in symmetric memory at "
                            "offset 4160",
                            "PE 1 has waited 3.0 s for a put from PE 7"));
}

// In npushmem_init.
TEST(WaitReport, NamesTheTeamOfABarrierOutsideOfACall) {
    EXPECT_THAT(describe_progress(std::vector{waiting_pe(0, "", 0, 4)}, report_time),
                ElementsAre("PE 0 has waited 4.0 s in the team world for a barrier"));
}

TEST(WaitReport, NamesPesThatDoNotRunTheProgram) {
    PeProgress ended = waiting_pe(0, "npushmem_barrier_all", 1, 1);
    ended.alive = false;
    PeProgress finalized = running_pe(1, 3);
    finalized.state = PeState::finalized;
    PeProgress starting = running_pe(2, 0);
    starting.state = PeState::starting;
    EXPECT_THAT(describe_progress(std::vector{ended, finalized, starting}, report_time),
                ElementsAre("PE 0 has ended", "PE 1 has finalized", "PE 2 has not finished the start"));
}

TEST(WaitReport, FindsAPeInAnotherCollectiveCall) {
    const std::vector<PeProgress> pes{
        waiting_pe(0, "npushmem_barrier_all", 12, 1), waiting_pe(1, "npushmem_barrier_all", 12, 1),
        waiting_pe(2, "npushmem_barrier_all", 12, 1), waiting_pe(3, "npushmem_int_broadcast", 12, 1)};
    EXPECT_THAT(describe_disagreements(pes, 4),
                ElementsAre("PE 3 is in npushmem_int_broadcast #12 of the team world, all others are in "
                            "npushmem_barrier_all #12"));
    // The job has PEs on another host, whose calls are not known.
    EXPECT_THAT(describe_disagreements(pes, 8),
                ElementsAre("PE 3 is in npushmem_int_broadcast #12 of the team world, PEs 0-2 are in "
                            "npushmem_barrier_all #12"));
}

TEST(WaitReport, FindsAPeThatIsACallBehind) {
    const std::vector<PeProgress> pes{waiting_pe(0, "npushmem_barrier_all", 12, 1), running_pe(1, 11),
                                      waiting_pe(2, "npushmem_barrier_all", 12, 1), running_pe(3, 12)};
    EXPECT_THAT(describe_disagreements(pes, 4), ElementsAre("PE 1 has not entered npushmem_barrier_all #12 of the team "
                                                            "world: the last collective call there was #11"));
}

TEST(WaitReport, ComparesCallsWithinATeam) {
    const std::vector<PeProgress> pes{waiting_pe(0, "npushmem_team_sync", 3, 1, "of PEs 0, 5, 1"),
                                      waiting_pe(1, "npushmem_int_max_reduce", 3, 1, "of PEs 0, 5, 1"),
                                      waiting_pe(2, "npushmem_barrier_all", 9, 1)};
    EXPECT_THAT(describe_disagreements(pes, 3),
                ElementsAre("PE 1 is in npushmem_int_max_reduce #3 of the team of PEs 0, 5, 1, PE 0 is in "
                            "npushmem_team_sync #3"));
    EXPECT_THAT(describe_disagreements(std::vector{pes[0], pes[2]}, 3), IsEmpty());
}

TEST(WaitReport, StatesThatItCoversOneHost) {
    const std::vector<int> pes{0, 1, 4};
    const PeRange here = PeRange::of(pes);
    EXPECT_EQ(describe_other_hosts({0, 1, 2}, 2, nullptr), "");
    EXPECT_EQ(describe_other_hosts(PeRange::one(0), 2, nullptr), "PE 1 runs on another host, whose report covers it");
    EXPECT_EQ(describe_other_hosts(here, 8, nullptr), "PEs 2-3,5-7 run on other hosts, whose reports cover them");
    const auto known = [](int pe) {
        if (pe == 3) return RemotePeState::lost;
        return pe > 5 ? RemotePeState::finalized : RemotePeState::unknown;
    };
    EXPECT_EQ(describe_other_hosts(here, 8, known),
              "PEs 2-3,5-7 run on other hosts, whose reports cover them; PE 3 is lost; PEs 6-7 have finalized");
}

TEST(WaitReport, ReadsAControlBlock) {
    const auto control = std::make_unique<ControlBlock>();
    control->pe = 5;
    control->state = static_cast<std::uint32_t>(PeState::running);
    control->progress.world_calls = 12;
    EXPECT_FALSE(progress_of(*control, true).wait);
    const PeProgress expected = waiting_pe(5, "npushmem_barrier_all", 12, 1);
    control->progress.wait.write(*expected.wait);
    const PeProgress read = progress_of(*control, true);
    EXPECT_EQ(read.pe, 5);
    EXPECT_EQ(read.world_calls, 12U);
    EXPECT_EQ(read.wait, expected.wait);
}

}  // namespace

}  // namespace npushmem
