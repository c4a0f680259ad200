// SPDX-License-Identifier: BSD-3-Clause
// The output of npushmem-perf combine and dispatch: reports, samples as CSV, medians as SVG.
#include <gmock/gmock.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/perf/moe/moe_reports.hpp"
#include "tests/fakes/svg_elements.hpp"

namespace npushmem::perf {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void fill(PayloadResult& result) {
    result.pes = 2;
    result.payload_bytes = 4000;
    result.rows = {30, 10};
    result.tokens = 20;
    result.back_to_back = {2e-6, 1e-6};
    result.ordinary = {4e-6, 2e-6, 3e-6};
    result.streaming = {5e-6};
    result.verified_calls = 6;
    result.copy = NPUSHMEMX_MOE_COPY_ORDINARY;
}

CombineResult combine_result() {
    CombineResult result;
    fill(result);
    result.combine = {1e-6, 9e-6, 6e-6};
    result.gathering = {2e-6, 2e-6};
    result.reordering = {7e-6};
    result.traffic.calls = 20;  // ten of each PE
    result.traffic.signals = 40;
    return result;
}

DispatchResult dispatch_result() {
    DispatchResult result;
    fill(result);
    result.dispatch = {2.5e-6};
    result.layer = {6e-6, 8e-6};
    result.capacity = 33;
    return result;
}

CombineCase a_case() {
    CombineCase c;
    c.workload = {"a <b> & c", 8, 2, 50, 10, 2};
    return c;
}

CombineOptions options_for(const std::string& mode) {
    CombineOptions options;
    options.mode = mode;
    return options;
}

using Rows = std::vector<std::vector<std::string>>;

Rows parsed_csv(const std::string& text) {
    Rows rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        auto& row = rows.emplace_back();
        std::istringstream fields(line);
        for (std::string value; std::getline(fields, value, ',');) row.push_back(value);
    }
    return rows;
}

// Returns seconds by measurement, in the order of iterations; checks the form of every line.
std::map<std::string, std::vector<double>> samples_of(const Rows& rows, const std::map<std::string, int>& bytes) {
    EXPECT_THAT(rows.at(0), ElementsAre("measurement", "iteration", "seconds", "bytes"));
    std::map<std::string, std::vector<double>> samples;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].size(), 4U);
        auto& seconds = samples[rows[i].at(0)];
        EXPECT_EQ(rows[i].at(1), std::to_string(seconds.size()));
        seconds.push_back(std::stod(rows[i].at(2)));
        EXPECT_EQ(std::stoi(rows[i].at(3)), bytes.at(rows[i].at(0)));
    }
    return samples;
}

TEST(LayerFiles, TheCsvOfACombineHasEverySample) {
    const auto samples = samples_of(parsed_csv(combine_csv(combine_result())), {{"combine", 4000},
                                                                                {"memcpy_ordinary", 4000},
                                                                                {"memcpy_streaming", 4000},
                                                                                {"plan_2_gather", 4000},
                                                                                {"plan_1_reorder", 4000}});
    ASSERT_EQ(samples.size(), 5U);
    EXPECT_EQ(samples.at("combine"), (std::vector<double>{1e-6, 9e-6, 6e-6}));
    EXPECT_EQ(samples.at("memcpy_ordinary"), (std::vector<double>{4e-6, 2e-6, 3e-6}));
    EXPECT_EQ(samples.at("memcpy_streaming"), (std::vector<double>{5e-6}));
    EXPECT_EQ(samples.at("plan_2_gather"), (std::vector<double>{2e-6, 2e-6}));
    EXPECT_EQ(samples.at("plan_1_reorder"), (std::vector<double>{7e-6}));
}

TEST(LayerFiles, TheCsvOfADispatchAddsTheBytesOfDispatchAndCombineForALayer) {
    const auto samples = samples_of(
        parsed_csv(dispatch_csv(dispatch_result())),
        {{"dispatch", 4000}, {"dispatch_combine", 8000}, {"memcpy_ordinary", 4000}, {"memcpy_streaming", 4000}});
    ASSERT_EQ(samples.size(), 4U);
    EXPECT_EQ(samples.at("dispatch"), (std::vector<double>{2.5e-6}));
    EXPECT_EQ(samples.at("dispatch_combine"), (std::vector<double>{6e-6, 8e-6}));
}

// Width of each bar by its name, in the order of the drawing.
std::vector<std::pair<std::string, double>> bars_of(const fakes::SvgPicture& picture) {
    std::vector<std::pair<std::string, double>> bars;
    for (const auto& bar : picture.all("rect")) {
        const auto colon = bar.tip.find(':');
        if (colon != std::string::npos) bars.emplace_back(bar.tip.substr(0, colon), bar.number("width"));
    }
    return bars;
}

TEST(LayerFiles, TheSvgOfACombineDrawsMediansToScale) {
    const auto picture = fakes::read_svg(combine_svg(a_case(), combine_result()));
    EXPECT_THAT(picture.texts(), AllOf(Contains("npushmem-perf combine: a &lt;b&gt; &amp; c on 2 PEs"),
                                       Contains("whiskers: 10th to 90th percentile of the calls")));
    fakes::expect_inside_the_view_box(picture);
    fakes::expect_separate_texts(picture);
    const auto bars = bars_of(picture);
    ASSERT_EQ(bars.size(), 5U);
    const std::vector<std::pair<std::string, double>> medians{
        {"combine", 6}, {"memcpy ordinary", 3}, {"memcpy streaming", 5}, {"sender, plan 2", 2}, {"sender, plan 1", 7}};
    for (std::size_t i = 0; i < bars.size(); ++i) {
        EXPECT_EQ(bars[i].first, medians[i].first);
        EXPECT_THAT(bars[i].second / bars[0].second, DoubleNear(medians[i].second / 6, 1e-2)) << bars[i].first;
    }
}

TEST(LayerFiles, TheSvgOfADispatchOmitsVariantsWithoutSamples) {
    DispatchResult result = dispatch_result();
    result.streaming.clear();
    const auto bars = bars_of(fakes::read_svg(dispatch_svg(a_case(), result)));
    ASSERT_EQ(bars.size(), 3U);
    EXPECT_EQ(bars[0].first, "dispatch");
    EXPECT_EQ(bars[1].first, "dispatch, combine");
    EXPECT_THAT(bars[1].second / bars[0].second, DoubleNear(7 / 2.5, 1e-2));
}

TEST(LayerFiles, TheReportOfACombineDescribesItsMode) {
    CombineResult result = combine_result();
    const std::string direct = combine_report(a_case(), options_for("direct"), result, "the map", "the nics");
    EXPECT_THAT(direct, AllOf(HasSubstr("rows go straight to their slots with ordinary stores"),
                              HasSubstr("the host puts rows to PEs whose memory is not mapped here"),
                              HasSubstr("32 bytes of signals per call (0.8000 % of the payload)"), HasSubstr("the map"),
                              HasSubstr("the nics")));
    result.traffic = {20, 0, 60, 40, 10, 5};
    const std::string stream = combine_report(a_case(), options_for("stream"), result, "", "");
    EXPECT_THAT(stream, AllOf(HasSubstr("rows go through a ring to each PE"), Not(HasSubstr("straight to their")),
                              HasSubstr("80 bytes per call (2.0000 % of the payload): 6.0 tails, 4.0 heads"),
                              HasSubstr("1.0 batches per call went across a ring's end; 0.5 waits")));
    EXPECT_THAT(stream, Not(HasSubstr("at a time")));
    EXPECT_THAT(combine_report(a_case(), options_for("chunked"), result, "", ""),
                HasSubstr("256 tokens of each PE at a"));
}

TEST(LayerFiles, TheReportOfADispatchDescribesDispatchAndCombine) {
    const std::string text = dispatch_report(a_case(), options_for("chunked"), dispatch_result(), "", "");
    EXPECT_THAT(text, AllOf(HasSubstr("mode chunked, room for 33 rows on each"),
                            HasSubstr("rows go straight to their experts with ordinary stores"),
                            HasSubstr("the host puts rows to PEs whose memory is not mapped here"),
                            HasSubstr("rows go through a ring to each PE"), HasSubstr("every byte of 40 rows")));
}

}  // namespace
}  // namespace npushmem::perf
