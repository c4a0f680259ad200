// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/sweep.hpp"

#include <gmock/gmock.h>

namespace npushmem::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Series series(std::string name, const std::vector<double>& times) {
    Series one{{}, std::move(name), {}};
    for (const double time : times) one.outcomes.push_back({.nanoseconds = time, .messages = 6, .slots = 2});
    return one;
}

const Sweep two{{2, 4, 8}, 1, {series("few", {100, 300, 900}), series("many", {200, 250, 0})}};

TEST(Sweep, FindsTheFastestAlgorithmOfEachSize) { EXPECT_THAT(fastest(two), ElementsAre(0, 1, 0)); }

TEST(Sweep, TheTableNamesTheCrossovers) {
    EXPECT_THAT(table(two), HasSubstr("fastest: from 2 PEs few, from 4 PEs many, from 8 PEs few\n"));
    EXPECT_THAT(table(two), HasSubstr("        8      0.900          -\n"));
}

TEST(Sweep, WritesALineForEachTime) {
    EXPECT_EQ(csv(two),
              "algorithm,pes,pes_per_node,time_us,messages,network_messages,turns,bytes_per_pe\n"
              "few,2,1,0.1000,6,0,0,128\nfew,4,1,0.3000,6,0,0,128\nfew,8,1,0.9000,6,0,0,128\n"
              "many,2,1,0.2000,6,0,0,128\nmany,4,1,0.2500,6,0,0,128\n");
}

TEST(Sweep, DrawsALineForEachAlgorithmAndMarksTheCrossovers) {
    const std::string svg = to_svg(two, "a <title>");
    EXPECT_THAT(svg, HasSubstr("a &lt;title&gt;"));
    EXPECT_THAT(svg, HasSubstr("<title>few</title>"));
    EXPECT_THAT(svg, HasSubstr("from 4 PEs many is the fastest"));
}

TEST(Sweep, ReportsEachSimulationWithTheShareOfThoseBefore) {
    std::vector<SweepStep> steps;
    const std::vector<barrier::Plan> plans{{barrier::dissemination_id}, barrier::parse_plan("two_proc").value()};
    ASSERT_TRUE(sweep(plans, {2, 6}, 1, default_model(), [&](const SweepStep& step) { steps.push_back(step); }).ok());
    ASSERT_EQ(steps.size(), 4U);
    EXPECT_EQ(steps[0].algorithm, "dissemination");
    EXPECT_EQ(steps[3].algorithm, "two_proc");
    EXPECT_EQ(steps[3].members, 6);
    EXPECT_EQ(steps[3].done, 3U);
    EXPECT_EQ(steps[3].total, 4U);
    EXPECT_DOUBLE_EQ(steps[0].share, 0);
    EXPECT_DOUBLE_EQ(steps[1].share, 2.0 / 16);
    EXPECT_DOUBLE_EQ(steps[3].share, 10.0 / 16);
}

TEST(Sweep, RunsTheSimulations) {
    const std::vector<barrier::Plan> plans{{barrier::dissemination_id}, barrier::parse_plan("two_proc").value()};
    auto result = sweep(plans, {2, 16}, 1, default_model());
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().series[1].outcomes[1].nanoseconds, 0) << "two_proc does not serve 16";
    EXPECT_GT(result.value().series[0].outcomes[1].nanoseconds, result.value().series[0].outcomes[0].nanoseconds);
}

}  // namespace
}  // namespace npushmem::simulate
