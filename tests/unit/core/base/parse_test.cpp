// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "core/base/parse.hpp"

namespace npushmem {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Split, KeepsEmptyPartsAndTrims) {
    EXPECT_THAT(split("a, b ,,c", ','), ElementsAre("a", "b", "", "c"));
    EXPECT_THAT(split("", ','), IsEmpty());
    EXPECT_THAT(split("one", ','), ElementsAre("one"));
}

TEST(Nearest, FindsMisspellingsOnly) {
    EXPECT_EQ(nearest("SYMETRIC_SIZE", {"SYMMETRIC_SIZE", "SIZE", "DEBUG"}), "SYMMETRIC_SIZE");
    EXPECT_EQ(nearest("FOO", {"SYMMETRIC_SIZE", "DEBUG"}), "");
}

TEST(Nearest, CompletesAUniquePrefix) {
    EXPECT_EQ(nearest("comb", {"combine", "contexts"}), "combine");
    EXPECT_EQ(nearest("com", {"combine", "compare"}), "");
    EXPECT_EQ(nearest("co", {"combine", "put"}), "");
}

TEST(Trimmed, RemovesOuterBlanksOnly) {
    EXPECT_EQ(trimmed("  a b\t"), "a b");
    EXPECT_EQ(trimmed(" \t "), "");
}

}  // namespace

namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(ParseBool, AcceptsEveryWordAndNothingElse) {
    for (const char* yes : {"1", "true", "YES", " on "}) EXPECT_TRUE(parse_bool(yes).value()) << yes;
    for (const char* no : {"0", "False", "no", "off"}) EXPECT_FALSE(parse_bool(no).value()) << no;
    for (const char* bad : {"", "2", "yess", "1 0"}) EXPECT_EQ(parse_bool(bad).status().code(), Code::config) << bad;
}

TEST(ParseInteger, RespectsTheBoundsAndTheWholeText) {
    EXPECT_EQ(parse_integer("-1", -1, 5).value(), -1);
    EXPECT_EQ(parse_integer(" 5 ", -1, 5).value(), 5);
    for (const char* bad : {"6", "-2", "", "5x", "0x5", "99999999999999999999"}) {
        EXPECT_THAT(parse_integer(bad, -1, 5).status().message(), HasSubstr("between -1 and 5")) << bad;
    }
}

TEST(ParseSize, TakesUnitsOfAnySpelling) {
    EXPECT_EQ(parse_size("0").value().value, 0U);
    EXPECT_EQ(parse_size("512").value().value, 512U);
    for (const char* kilo : {"2k", "2K", "2KB", "2 KiB"}) EXPECT_EQ(parse_size(kilo).value().value, 2048U) << kilo;
    EXPECT_EQ(parse_size("3G").value().value, 3ULL << 30);
    EXPECT_EQ(parse_size("1t").value().value, 1ULL << 40);
}

TEST(ParseSize, RejectsMalformedSizes) {
    for (const char* bad : {"", "G", "-1", "1.5G", "1X", "1GG", "1Gfoo", "5ib", "1kibi", "1 2", "0x10"})
        EXPECT_THAT(parse_size(bad).status().message(), HasSubstr("is not a size")) << bad;
    EXPECT_THAT(parse_size("99999999T").status().message(), HasSubstr("fits into 64 bits"));
}

TEST(ParseDuration, TakesUnits) {
    EXPECT_EQ(parse_duration("0").value(), 0ns);
    EXPECT_EQ(parse_duration("2.5s").value(), 2500ms);
    EXPECT_EQ(parse_duration("3").value(), 3s);
    EXPECT_EQ(parse_duration("10 us").value(), 10us);
    EXPECT_EQ(parse_duration("2m").value(), 2min);
    EXPECT_EQ(parse_duration("0.1ns").value(), 1ns) << "0 would mean that there is none";
    for (const char* bad : {"", "s", "-1s", "1y", "nan", "1e30s", "1sfoo", "1 s s"})
        EXPECT_EQ(parse_duration(bad).status().code(), Code::config) << bad;
}

TEST(FormatSize, UsesTheLargestExactUnit) {
    EXPECT_EQ(format_size(1ULL << 30), "1 GiB");
    EXPECT_EQ(format_size(1500), "1500 B");
    EXPECT_EQ(format_size((1ULL << 30) + 1), "1.0 GiB");
}

TEST(FormatDuration, ChoosesTheUnit) {
    EXPECT_EQ(format_duration(12ns), "12 ns");
    EXPECT_EQ(format_duration(1500us), "1.5 ms");
    EXPECT_EQ(format_duration(2s), "2 s");
}

}  // namespace

}  // namespace npushmem
