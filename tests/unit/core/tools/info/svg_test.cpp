// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/svg.hpp"

#include <gmock/gmock.h>

namespace npushmem::info {
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

}  // namespace
}  // namespace npushmem::info
