// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/shared_library.hpp"

#include <gtest/gtest.h>

namespace npushmem {
namespace {

std::string remedy_without(const std::string& library) {
    return remedy_for_missing_library(library + ": cannot open shared object file: No such file or directory");
}

TEST(SharedLibrary, TheRemedyNamesThePackageOfAMissingLibrary) {
    EXPECT_EQ(remedy_without("libfabric.so.1"), "install libfabric.so.1 (on Debian: package libfabric1)");
    EXPECT_EQ(remedy_without("refused: libucp.so.0"), "install libucp.so.0 (on Debian: package libucx0)");
    EXPECT_EQ(remedy_without("libmpi.so.40"), "install libmpi.so.40 (on Debian: package libopenmpi3)");
}

TEST(SharedLibrary, OtherErrorsHaveNoSuchRemedy) {
    EXPECT_EQ(remedy_without("/a/libnpushmem_transport_mine.so"), "");
    EXPECT_EQ(remedy_for_missing_library("/a/b.so: undefined symbol: f"), "");
}

TEST(ReadableTexts, ContainTextsOfAPageThatIsKnown) {
    ReadableTexts texts;
    EXPECT_TRUE(texts.contain("first"));
    EXPECT_TRUE(texts.contain("second"));
    EXPECT_FALSE(texts.contain(reinterpret_cast<const char*>(std::uintptr_t{8})));
    EXPECT_TRUE(texts.contain("third"));
}

TEST(ReadableTexts, DoNotContainAnAddressInTheFirstPage) {
    EXPECT_FALSE(ReadableTexts().contain(reinterpret_cast<const char*>(std::uintptr_t{8})));
}

}  // namespace
}  // namespace npushmem
