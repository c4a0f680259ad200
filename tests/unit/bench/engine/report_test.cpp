// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace npushmem::bench {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ReportHead head() { return {"put", "a machine", 2, 21.5, {}}; }

std::vector<PointResult> one_point() {
    VariantResult ours{"npushmem", false, 100, {10, 10}, summarise({10, 10}), summarise({1, 1})};
    VariantResult theirs{"memcpy", true, 100, {8, 8}, summarise({8, 8}), summarise({1.25, 1.25})};
    return {{"put 1 KiB", 1024, {ours, theirs}}};
}

TEST(FormatTime, PrintsThreeSignificantDigits) {
    EXPECT_EQ(format_time(0), "0.00 ns");
    EXPECT_EQ(format_time(1.849), "1.85 ns");
    EXPECT_EQ(format_time(9.996), "10.0 ns");
    EXPECT_EQ(format_time(123.4), "123 ns");
    EXPECT_EQ(format_time(1'500), "1.50 us");
    EXPECT_EQ(format_time(12'340'000), "12.3 ms");
    EXPECT_EQ(format_time(2.5e9), "2.50 s");
    EXPECT_EQ(format_time(5e12), "5000 s");
}

TEST(TextReport, NamesPointVariantsRateAndRatio) {
    const std::string text = text_report(head(), one_point());
    EXPECT_THAT(text, StartsWith("put: 2 PEs on a machine"));
    EXPECT_THAT(text, HasSubstr("put 1 KiB"));
    EXPECT_THAT(text, HasSubstr("102.40 GB/s"));
    EXPECT_THAT(text, HasSubstr("1.250 ± 0.000"));
    EXPECT_THAT(text, HasSubstr("21.5 ns"));
}

TEST(TextReport, StatesWhyAPointHasNoBaseline) {
    auto points = one_point();
    EXPECT_THAT(text_report(head(), points), Not(HasSubstr("no baseline")));
    EXPECT_FALSE(nlohmann::json::parse(json_report(head(), points))["points"][0].contains("no_baseline"));
    points[0].variants.pop_back();
    points[0].no_baseline = "nothing is mapped";
    EXPECT_THAT(text_report(head(), points), HasSubstr("\nput 1 KiB: no baseline: nothing is mapped\n"));
    EXPECT_EQ(nlohmann::json::parse(json_report(head(), points))["points"][0]["no_baseline"], "nothing is mapped");
}

TEST(CsvReport, OneLineForEachVariant) {
    const std::string text = csv_report(head(), one_point());
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
    EXPECT_THAT(text, HasSubstr("put,2,\"put 1 KiB\",1024,\"memcpy\",1,100,8.0000,"));
}

TEST(JsonReport, IsParsedAsItWasWritten) {
    const auto document = nlohmann::json::parse(json_report(head(), one_point()));
    EXPECT_EQ(document["pes"], 2);
    const auto& variants = document["points"][0]["variants"];
    ASSERT_EQ(variants.size(), 2U);
    EXPECT_EQ(variants[1]["name"], "memcpy");
    EXPECT_EQ(variants[1]["ratio"], 1.25);
    EXPECT_EQ(variants[0]["gb_per_s"], 102.4);
}

TEST(JsonReport, OfATableHasAnObjectForEachRow) {
    const ResultTable table{
        "soup", {"name", "time_us", "pes"}, {{"a", 1.5, std::int64_t{2}}, {"b", 0.5, std::int64_t{4}}}};
    const auto document = nlohmann::json::parse(json_report(table));
    EXPECT_EQ(document["title"], "soup");
    ASSERT_EQ(document["rows"].size(), 2U);
    EXPECT_EQ(document["rows"][0], nlohmann::json::parse(R"({"name": "a", "time_us": 1.5, "pes": 2})"));
    EXPECT_EQ(document["rows"][1]["pes"], 4);
}

}  // namespace
}  // namespace npushmem::bench
