#include "core/base/strings.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Split, KeepsEmptyPartsAndTrims) {
    EXPECT_THAT(split("a, b ,,c", ','), ElementsAre("a", "b", "", "c"));
    EXPECT_THAT(split("", ','), IsEmpty());
    EXPECT_THAT(split("one", ','), ElementsAre("one"));
}

TEST(Nearest, FindsMisspellingsAndRefusesStrangers) {
    EXPECT_EQ(nearest("SYMETRIC_SIZE", {"SYMMETRIC_SIZE", "SIZE", "DEBUG"}), "SYMMETRIC_SIZE");
    EXPECT_EQ(nearest("FOO", {"SYMMETRIC_SIZE", "DEBUG"}), "");
}

TEST(Nearest, CompletesWhatOnlyOneBeginsWith) {
    EXPECT_EQ(nearest("comb", {"combine", "contexts"}), "combine");
    EXPECT_EQ(nearest("com", {"combine", "compare"}), "");
    EXPECT_EQ(nearest("co", {"combine", "put"}), "");
}

TEST(Trimmed, RemovesOuterBlanksOnly) {
    EXPECT_EQ(trimmed("  a b\t"), "a b");
    EXPECT_EQ(trimmed(" \t "), "");
}

}  // namespace
}  // namespace npushmem
