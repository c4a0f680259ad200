#include "core/tools/run/tagged_output.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <array>

#include "tests/unit/core/tools/run/make_poller.hpp"

namespace npushmem::run {
namespace {

using std::chrono::milliseconds;

struct Pipe {
    Fd read;
    Fd write;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {Fd(ends[0]), Fd(ends[1])};
}

void put(const Fd& fd, const std::string& text) {
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

class TaggedOutputTest : public ::testing::Test {
protected:
    Poller poller_ = make_poller();
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

TEST_F(TaggedOutputTest, FinishTakesWhatIsLeftAlthoughAWriterIsThere) {
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

TEST_F(TaggedOutputTest, SinkKeepsWhatItsReaderDoesNotTake) {
    output_.text().assign(std::size_t{1} << 20, 'x');  // far more than a pipe holds
    output_.flush();
    EXPECT_FALSE(output_.idle());
    EXPECT_FALSE(output_.broken());
    EXPECT_LT(output_.text().size(), std::size_t{1} << 20);
    EXPECT_EQ(::fcntl(reader_.write.get(), F_GETFL) & O_NONBLOCK, 0);  // the shared descriptor is as it was
}

}  // namespace
}  // namespace npushmem::run
