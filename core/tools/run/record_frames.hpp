// Records on their way from a host of the job to the launcher, within the standard error of the remote shell: the only
// connection that is certain to exist. A frame is one line that begins with a mark, which only the two ends know; all
// other bytes are output of programs. A frame is short enough to be written in one piece, between which a program may
// write; a longer record takes several frames.
//
//     <mark>+<text>\n   the record continues in the next frame
//     <mark>.<text>\n   the record ends here
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/launcher_channel.hpp"

namespace npushmem::run {

// Random, and no text; empty without a source of random bytes.
std::string make_mark();

std::string frames_of(const LauncherRecord& record, std::string_view mark);

class FrameScanner {
public:
    explicit FrameScanner(std::string mark) : mark_(std::move(mark)) {}

    // Appends to `output` what belongs to programs. Returns the records that are complete.
    std::vector<LauncherRecord> feed(std::string_view bytes, std::string& output);
    // The stream has ended: what looked like the beginning of a frame is output.
    void finish(std::string& output);

private:
    bool take_output(std::string& output);
    bool take_frame(std::vector<LauncherRecord>& records);

    std::string mark_;
    std::string waiting_;  // not yet recognised
    std::string record_;   // of earlier frames
};

}  // namespace npushmem::run
