// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/svg.hpp"

#include <gmock/gmock.h>

namespace npushmem::svg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Svg, IsOneDocumentOfTheGivenSize) {
    Svg svg("a < b");
    svg.rect({1, 2, 30, 40}, "red", "none", "tip & more");
    svg.text({5, 6}, "\"quoted\"");
    svg.curve({0, 0}, {10, 20}, "#000", 2, "");
    const auto text = svg.document(100, 50);
    EXPECT_THAT(text, AllOf(StartsWith("<svg "), HasSubstr("width=\"100\" height=\"50\""), HasSubstr("a &lt; b"),
                            HasSubstr("tip &amp; more"), HasSubstr("&quot;quoted&quot;"), HasSubstr("</svg>")));
    EXPECT_THAT(text, Not(HasSubstr("stroke-dasharray")));
}

TEST(Svg, ReducesALargeDrawingToThePage) {
    const Svg svg("t");
    EXPECT_THAT(svg.document(200, 50, {0, 0, 100, 100}),
                HasSubstr("width=\"100\" height=\"25\" viewBox=\"0 0 200 50\""));
    EXPECT_THAT(svg.document(50, 200, {0, 0, 100, 100}),
                HasSubstr("width=\"25\" height=\"100\" viewBox=\"0 0 50 200\""));
    EXPECT_THAT(svg.document(50, 20, {0, 0, 100, 100}), HasSubstr("width=\"50\" height=\"20\" viewBox=\"0 0 50 20\""));
}

TEST(Svg, TextWidthCountsLettersAndSize) {
    EXPECT_DOUBLE_EQ(text_width("\u00b5", {.size = 10}), text_width("n", {.size = 10})) << "one letter, two bytes";
    EXPECT_DOUBLE_EQ(text_width("abc", {.size = 20}), 2 * text_width("abc", {.size = 10}));
    EXPECT_LT(text_width("ill", {}), text_width("WWW", {}));
    EXPECT_LT(text_width("abc", {}), text_width("abc", {.bold = true}));
    EXPECT_DOUBLE_EQ(text_width("ill", {.monospace = true}), text_width("WWW", {.monospace = true}));
}

}  // namespace
}  // namespace npushmem::svg
