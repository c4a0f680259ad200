// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_streams.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tests/unit/core/tools/run/make_poller.hpp"

namespace npushmem::run {

namespace {

using std::chrono::milliseconds;

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
TEST(LinePrefixer, OutputDoesNotDependOnReadBoundaries) {
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

struct Pipe {
    FileDescriptor read;
    FileDescriptor write;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void put(const FileDescriptor& fd, const std::string& text) {
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

class TaggedOutputTest : public ::testing::Test {
protected:
    DispatchingPoller poller_ = make_poller();
    Pipe reader_ = make_pipe();
    OutputSink output_{reader_.write.get()};
    OutputSink errors_{reader_.write.get()};
};

TEST_F(TaggedOutputTest, LinesOfTwoPesDoNotMix) {
    TaggedOutput tagged(poller_, output_, errors_);
    Pipe out0 = make_pipe(), err0 = make_pipe(), out1 = make_pipe(), err1 = make_pipe();
    ASSERT_TRUE(tagged.add(0, std::move(out0.read), std::move(err0.read)).ok());
    ASSERT_TRUE(tagged.add(1, std::move(out1.read), std::move(err1.read)).ok());
    put(out0.write, "ab");
    poller_.run_once(milliseconds(0));
    put(out1.write, "xy\n");
    put(err1.write, "bad\n");
    poller_.run_once(milliseconds(0));
    put(out0.write, "c\nrest");
    poller_.run_once(milliseconds(0));
    EXPECT_EQ(output_.text(), "[pe 1] xy\n[pe 0] abc\n");
    EXPECT_EQ(errors_.text(), "[pe 1] bad\n");
    out0.write.reset();
    poller_.run_once(milliseconds(0));
    EXPECT_EQ(output_.text(), "[pe 1] xy\n[pe 0] abc\n[pe 0] rest\n");
}

TEST_F(TaggedOutputTest, FinishReadsTheRestWhileAWriterIsOpen) {
    TaggedOutput tagged(poller_, output_, errors_);
    Pipe out = make_pipe(), err = make_pipe();
    ASSERT_TRUE(tagged.add(7, std::move(out.read), std::move(err.read)).ok());
    put(out.write, "last\nwords");
    tagged.finish();
    EXPECT_EQ(output_.text(), "[pe 7] last\n[pe 7] words\n");
}

TEST_F(TaggedOutputTest, StopsReadingWhileTheSinkIsFull) {
    TaggedOutput tagged(poller_, output_, errors_);
    Pipe out = make_pipe(), err = make_pipe();
    ASSERT_TRUE(tagged.add(0, std::move(out.read), std::move(err.read)).ok());
    output_.text().assign(OutputSink::high_water + 1, '.');
    put(out.write, "late\n");
    poller_.run_once(milliseconds(0));
    poller_.run_once(milliseconds(0));
    EXPECT_EQ(output_.text().size(), OutputSink::high_water + 1);
    output_.text().clear();
    tagged.resume();
    poller_.run_once(milliseconds(0));
    EXPECT_EQ(output_.text(), "[pe 0] late\n");
}

TEST_F(TaggedOutputTest, SinkKeepsBytesThatItsReaderDoesNotRead) {
    output_.text().assign(std::size_t{1} << 20, 'x');  // far more than a pipe holds
    output_.flush();
    EXPECT_FALSE(output_.idle());
    EXPECT_FALSE(output_.broken());
    EXPECT_LT(output_.text().size(), std::size_t{1} << 20);
    EXPECT_EQ(::fcntl(reader_.write.get(), F_GETFL) & O_NONBLOCK, 0);  // the shared descriptor is as it was
}

}  // namespace

}  // namespace npushmem::run
