#include "core/tools/run/line_prefixer.hpp"

#include <gtest/gtest.h>

#include <random>

namespace npushmem::run {
namespace {

std::string prefixed(const std::vector<std::string>& pieces, std::size_t limit = LinePrefixer::longest_line) {
    LinePrefixer prefixer("[t] ", limit);
    std::string out;
    for (const auto& piece : pieces) prefixer.feed(piece, out);
    prefixer.finish(out);
    return out;
}

TEST(LinePrefixer, TagsEveryLine) {
    EXPECT_EQ(prefixed({"a\nb\n"}), "[t] a\n[t] b\n");
    EXPECT_EQ(prefixed({"\n\n"}), "[t] \n[t] \n");
    EXPECT_EQ(prefixed({}), "");
    EXPECT_EQ(prefixed({""}), "");
}

TEST(LinePrefixer, HoldsAPartialLineUntilItIsWhole) {
    LinePrefixer prefixer("[t] ");
    std::string out;
    prefixer.feed("ab", out);
    EXPECT_EQ(out, "");
    prefixer.feed("c\nd", out);
    EXPECT_EQ(out, "[t] abc\n");
    prefixer.finish(out);
    EXPECT_EQ(out, "[t] abc\n[t] d\n");
    prefixer.finish(out);
    EXPECT_EQ(out, "[t] abc\n[t] d\n");
}

TEST(LinePrefixer, BreaksLinesAboveTheLimit) {
    EXPECT_EQ(prefixed({"abcdefgh"}, 3), "[t] abc\n[t] def\n[t] gh\n");
    EXPECT_EQ(prefixed({"abc\ndef\n"}, 3), "[t] abc\n[t] def\n");
    EXPECT_EQ(prefixed({"abc", "\n"}, 3), "[t] abc\n");
}

TEST(LinePrefixer, PassesAnyByte) {
    const std::string zero("a\0b\n", 4);
    EXPECT_EQ(prefixed({zero}), "[t] " + zero);
    EXPECT_EQ(prefixed({"\xff\r\n"}), "[t] \xff\r\n");
}

// Whatever the pieces, the result is that of one piece.
TEST(LinePrefixer, ResultDoesNotDependOnThePieces) {
    std::mt19937 random(20240717);
    for (int round = 0; round < 2000; ++round) {
        std::string text(random() % 60, ' ');
        for (char& c : text) c = random() % 5 == 0 ? '\n' : static_cast<char>('a' + random() % 26);
        std::vector<std::string> pieces;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t length = random() % 9;
            pieces.push_back(text.substr(begin, length));
            begin += length;
        }
        const std::size_t limit = 1 + random() % 12;
        EXPECT_EQ(prefixed(pieces, limit), prefixed({text}, limit)) << "round " << round;
    }
}

}  // namespace
}  // namespace npushmem::run
