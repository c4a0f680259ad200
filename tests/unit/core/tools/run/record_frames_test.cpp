#include "core/tools/run/record_frames.hpp"

#include <gmock/gmock.h>

#include <climits>

namespace npushmem::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LauncherRecord record_of(const std::string& text) { return {LauncherRecord::Kind::line, 3, "pe 3/8", text}; }

TEST(RecordFrames, MarksDifferAndAreNoText) {
    EXPECT_NE(make_mark(), make_mark());
    EXPECT_EQ(make_mark().size(), 33U);
    EXPECT_LT(make_mark().front(), ' ');
}

TEST(RecordFrames, RecordsArriveWhateverPiecesTheyComeIn) {
    const std::string mark = make_mark();
    const auto records = {record_of("100% sure\nand\ttwo lines"), record_of(std::string(20000, '%')), record_of("")};
    std::string stream = "before ";
    for (const auto& record : records) stream += frames_of(record, mark) + "between\n";
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
        FrameScanner scanner(mark);
        std::string output;
        std::vector<LauncherRecord> seen;
        for (std::size_t begin = 0; begin < stream.size(); begin += piece)
            for (auto& record : scanner.feed(std::string_view(stream).substr(begin, piece), output))
                seen.push_back(std::move(record));
        scanner.finish(output);
        EXPECT_EQ(seen, std::vector<LauncherRecord>(records)) << piece;
        EXPECT_EQ(output, "before between\nbetween\nbetween\n") << piece;
    }
}

// A program on the host writes between the frames of a long record.
TEST(RecordFrames, ALongRecordTakesSeveralFramesThatArePiecesOfAPipe) {
    const std::string mark = make_mark();
    const LauncherRecord record = record_of(std::string(9000, 'x'));
    std::string stream;
    const std::string frames = frames_of(record, mark);
    for (std::size_t begin = 0; begin < frames.size();) {
        const auto end = frames.find('\n', begin) + 1;
        EXPECT_LE(end - begin, std::size_t{PIPE_BUF});
        stream += frames.substr(begin, end - begin) + "program\n";
        begin = end;
    }
    FrameScanner scanner(mark);
    std::string output;
    EXPECT_THAT(scanner.feed(stream, output), ElementsAre(record));
    EXPECT_EQ(output, "program\nprogram\nprogram\n");
}

TEST(RecordFrames, OutputIsPassedOnUnchanged) {
    const std::string mark = make_mark();
    FrameScanner scanner(mark);
    const std::string program = "\x1e not a mark, " + mark.substr(0, 9) + "\nbytes \x01\xff without a newline";
    std::string output;
    EXPECT_THAT(scanner.feed(program + mark.substr(0, 20), output), IsEmpty());
    EXPECT_EQ(output, program);
    scanner.finish(output);
    EXPECT_EQ(output, program + mark.substr(0, 20));
}

TEST(RecordFrames, AFrameWithoutARecordIsDropped) {
    const std::string mark = make_mark();
    FrameScanner scanner(mark);
    std::string output;
    for (const char* text : {"\n", ".\n", ".nonsense\n", "+\n"})
        EXPECT_THAT(scanner.feed(mark + text, output), IsEmpty()) << text;
    EXPECT_THAT(scanner.feed(frames_of(record_of("good"), mark), output), ElementsAre(record_of("good")));
    EXPECT_EQ(output, "");
}

}  // namespace
}  // namespace npushmem::run
