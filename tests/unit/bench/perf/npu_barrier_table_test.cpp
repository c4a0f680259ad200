// SPDX-License-Identifier: BSD-3-Clause
// The output of npushmem-perf npu-barrier: the table and the charts.
#include <gmock/gmock.h>

#include "bench/perf/barrier/npu_barrier.hpp"
#include "tests/fakes/svg_elements.hpp"

namespace npushmem::perf {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Real times of three decades; the virtual time of v3 failed on 4 PEs.
const BarrierTable results{{{"v1", 2, 900e-6, 3e-6, {1, 0}},
                            {"v1", 3, 1500e-6, 4e-6, {2, 0}},
                            {"v1", 4, 1900e-6, 5e-6, {2, 0}},
                            {"v3", 2, 4e-6, 4e-6, {0, 1}},
                            {"v3", 3, 6e-6, 3e-6, {0, 2}},
                            {"v3", 4, 8e-6, 0, {0, 3}}}};

TEST(BarrierTable, TheTextNamesTheFastestAndTheCrossovers) {
    const std::string text = barrier_table_text(results);
    EXPECT_THAT(text, AllOf(HasSubstr("real time: from 2 PEs on, v3 is the fastest\nvirtual"),
                            HasSubstr("virtual time: from 2 PEs on, v1 is the fastest\n"),
                            HasSubstr("virtual time: from 3 PEs on, v3 is the fastest\n")));
}

TEST(BarrierTable, TheChartHasTicksUnitsAndVisibleCurves) {
    const auto picture = fakes::read_svg(barrier_table_svg(results, &BarrierRow::seconds));
    EXPECT_THAT(picture.texts(),
                AllOf(Contains("number of PEs"), Contains("latency of a barrier (µs)"), Contains("2"), Contains("3"),
                      Contains("4"), Contains("10"), Contains("1000"), Contains("v1"), Contains("v3")));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
    int curves = 0;
    for (const auto& line : picture.all("polyline")) {
        if (line.tip.empty()) continue;
        ++curves;
        const auto points = fakes::points_of(line);
        ASSERT_EQ(points.size(), 3U);
        EXPECT_GT(std::abs(points.front().y - points.back().y), 10) << line.tip << " is no flat line at the bottom";
    }
    EXPECT_EQ(curves, 2);
}

TEST(BarrierTable, TheVirtualChartOmitsFailures) {
    const std::string svg = barrier_table_svg(results, &BarrierRow::virtual_seconds);
    EXPECT_THAT(svg, AllOf(HasSubstr("virtual latency of a barrier"), Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
    fakes::expect_inside_the_view_box(fakes::read_svg(svg));
}

}  // namespace
}  // namespace npushmem::perf
