// Records of PEs on another host: frames in the standard error of the remote shell, and the thread that reads them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/launcher_channel.hpp"
#include "core/tools/run/fd.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

// Records on their way from a host of the job to the launcher, within the standard error of the remote shell: the only
// connection that is certain to exist. A frame is one line that begins with a mark, which only the two ends know; all
// other bytes are output of programs. A frame is short enough to be written in one piece, between which a program may
// write; a longer record takes several frames.
//
//     <mark>+<text>\n   the record continues in the next frame
//     <mark>.<text>\n   the record ends here

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

// Passes on what a remote shell writes to its standard error: output to this process's own, records to the launcher. A
// thread does it, so that a slow reader of the output does not keep the process from its other work.
class ErrorRelay {
public:
    // `from`: the reading end of the shell's standard error.
    static Result<std::unique_ptr<ErrorRelay>> start(Fd from, const std::string& mark);
    ErrorRelay(const ErrorRelay&) = delete;
    ErrorRelay& operator=(const ErrorRelay&) = delete;
    ~ErrorRelay() { finish(); }

    // The shell has ended: passes on what it has left, and ends. Processes that still hold the stream are not awaited.
    void finish();
    // Has the launcher received a number of failed calls?
    [[nodiscard]] bool passed_failed_calls() const { return passed_failed_calls_; }

private:
    ErrorRelay() = default;
    void run(const std::string& mark);
    [[nodiscard]] bool wait_for_more();

    Fd from_;
    Fd stop_reading_;
    Fd stop_;  // closed to end the thread
    std::size_t left_ = 0;
    bool stopping_ = false;
    std::atomic<bool> passed_failed_calls_{false};
    std::thread thread_;
};

}  // namespace npushmem::run
