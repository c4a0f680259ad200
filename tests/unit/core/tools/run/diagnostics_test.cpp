#include "core/tools/run/diagnostics.hpp"

#include <gtest/gtest.h>

namespace npushmem::run {
namespace {

using std::chrono::milliseconds;

constexpr Diagnostics::Time begin{};

LauncherRecord from(int pe, const std::string& text) {
    return {LauncherRecord::Kind::line, pe, "pe " + std::to_string(pe) + "/17", text};
}

TEST(Diagnostics, RangesJoinNeighbours) {
    EXPECT_EQ(ranges_of({}), "");
    EXPECT_EQ(ranges_of({4}), "4");
    EXPECT_EQ(ranges_of({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(Diagnostics, OneLineOfAllPesIsDueAtOnce) {
    Diagnostics diagnostics(17, false);
    for (int pe = 16; pe >= 0; --pe) {
        EXPECT_EQ(diagnostics.take(begin), "") << "before PE " << pe;
        diagnostics.add(from(pe, "error api: npushmem_put: PE 99 does not exist"), begin);
    }
    EXPECT_EQ(diagnostics.take(begin), "npushmem PEs 0-16: error api: npushmem_put: PE 99 does not exist\n");
    EXPECT_TRUE(diagnostics.empty());
    EXPECT_FALSE(diagnostics.deadline().has_value());
}

TEST(Diagnostics, ALineOfOnePeStaysAsThePeHasIt) {
    Diagnostics diagnostics(17, false);
    diagnostics.add(from(3, "error api: mine"), begin);
    diagnostics.add({LauncherRecord::Kind::line, 4, "", "error api: before the start"}, begin);
    EXPECT_EQ(diagnostics.deadline(), begin + Diagnostics::merge_window);
    EXPECT_EQ(diagnostics.take(begin + Diagnostics::merge_window - milliseconds(1)), "");
    EXPECT_EQ(diagnostics.take(begin + Diagnostics::merge_window),
              "npushmem pe 3/17 error api: mine\nnpushmem error api: before the start\n");
}

TEST(Diagnostics, TheOnlyPeWaitsForNobody) {
    Diagnostics diagnostics(1, false);
    diagnostics.add({LauncherRecord::Kind::line, 0, "pe 0/1", "warn config: x"}, begin);
    EXPECT_EQ(diagnostics.take(begin), "npushmem pe 0/1 warn config: x\n");
}

TEST(Diagnostics, DifferentLinesAreNotMergedAndKeepTheirOrder) {
    Diagnostics diagnostics(4, false);
    diagnostics.add(from(1, "b"), begin);
    diagnostics.add(from(0, "a"), begin);
    diagnostics.add(from(2, "b"), begin);
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 1-2: b\nnpushmem pe 0/17 a\n");
}

// What happened twice is reported twice.
TEST(Diagnostics, ALineThatAPeRepeatsIsALineOfItsOwn) {
    Diagnostics diagnostics(2, false);
    for (const int pe : {0, 0, 1, 0}) diagnostics.add(from(pe, "a"), begin);
    EXPECT_EQ(diagnostics.take(begin), "");
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 0-1: a\nnpushmem pe 0/17 a\nnpushmem pe 0/17 a\n");
}

TEST(Diagnostics, APeThatIsNotKnownIsMergedWithNone) {
    Diagnostics diagnostics(2, true);
    for (const int pe : {-1, -1, 0}) diagnostics.add({LauncherRecord::Kind::line, pe, "", "a"}, begin);
    EXPECT_EQ(diagnostics.take_all(), "npushmem a\nnpushmem a\n[pe 0] npushmem a\n");
}

TEST(Diagnostics, LatecomersExtendTheWaitUpToALimit) {
    Diagnostics diagnostics(1000, false);
    auto now = begin;
    for (int pe = 0; now < begin + Diagnostics::limit; ++pe, now += Diagnostics::merge_window / 2) {
        EXPECT_EQ(diagnostics.take(now), "");
        diagnostics.add(from(pe, "a"), now);
    }
    EXPECT_EQ(diagnostics.deadline(), begin + Diagnostics::limit);
    EXPECT_NE(diagnostics.take(now), "");
}

TEST(Diagnostics, AMessageOfTheLauncherStandsBehindWhatWaits) {
    Diagnostics diagnostics(3, false);
    diagnostics.add({LauncherRecord::Kind::message, -1, "", "alone"}, begin);
    EXPECT_EQ(diagnostics.take(begin), "npushmem-run: alone\n");
    diagnostics.add(from(0, "a"), begin);
    diagnostics.add({LauncherRecord::Kind::message, -1, "", "behind"}, begin);
    diagnostics.add(from(1, "a"), begin);
    EXPECT_EQ(diagnostics.take(begin), "");
    EXPECT_EQ(diagnostics.take_all(), "npushmem PEs 0-1: a\nnpushmem-run: behind\n");
}

TEST(Diagnostics, TaggedOutputHasTheTagBeforeEachLineOfOnePe) {
    Diagnostics diagnostics(3, true);
    diagnostics.add(from(2, "a\nb"), begin);
    for (const int pe : {0, 1}) diagnostics.add(from(pe, "c"), begin);
    EXPECT_EQ(diagnostics.take_all(), "[pe 2] npushmem pe 2/17 a\n[pe 2] b\nnpushmem PEs 0-1: c\n");
}

TEST(Diagnostics, FailedCallsAreListedByNumber) {
    EXPECT_EQ(describe_failed_calls({{5, 1}}), "1 call failed (1 on PE 5)");
    EXPECT_EQ(describe_failed_calls({{0, 1}, {1, 1}, {2, 1}, {7, 40}}),
              "43 calls failed (1 on each of PEs 0-2, 40 on PE 7)");
}

}  // namespace
}  // namespace npushmem::run
