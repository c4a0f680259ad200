// SPDX-License-Identifier: BSD-3-Clause
// Records of PEs on another host: frames in the standard error of the remote shell, and the thread that reads them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/launcher_channel.hpp"
#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

// Records travel from a host of the job to the launcher within the standard error of the remote shell, the only
// connection that always exists. A frame is one line that begins with a mark, which only the two ends know; all other
// bytes are output of programs. A frame is short enough to be written atomically; a longer record takes several frames,
// between which programs may write.
//
//     <mark>+<text>\n   the record continues in the next frame
//     <mark>.<text>\n   the record ends here

// Returns a random mark that is not text; empty without a source of random bytes.
std::string make_mark();

std::string frames_of(const LauncherRecord& record, std::string_view mark);

class FrameScanner {
public:
    explicit FrameScanner(std::string mark) : mark_(std::move(mark)) {}

    // Appends the output of programs to `output`. Returns the complete records.
    std::vector<LauncherRecord> feed(std::string_view bytes, std::string& output);
    // The stream has ended: an incomplete frame is output.
    void finish(std::string& output);

private:
    bool take_output(std::string& output);
    bool take_frame(std::vector<LauncherRecord>& records);

    std::string mark_;
    std::string waiting_;  // not yet recognised
    std::string record_;   // of earlier frames
};

// Forwards the standard error of a remote shell: output to this process's standard error, records to the launcher. It
// runs in a thread, so that a slow reader of the output does not block the process.
class ErrorRelay {
public:
    // `from`: the reading end of the shell's standard error.
    static Result<std::unique_ptr<ErrorRelay>> start(FileDescriptor from, const std::string& mark);
    ErrorRelay(const ErrorRelay&) = delete;
    ErrorRelay& operator=(const ErrorRelay&) = delete;
    ~ErrorRelay() { finish(); }

    // The shell has ended: forwards the rest, and ends. It does not wait for other processes that hold the stream open.
    void finish();
    // Has the launcher received a number of failed calls?
    [[nodiscard]] bool passed_failed_calls() const { return passed_failed_calls_; }

private:
    ErrorRelay() = default;
    void run(const std::string& mark);
    [[nodiscard]] bool wait_for_more();

    FileDescriptor from_;
    FileDescriptor stop_reading_;
    FileDescriptor stop_;  // closed to end the thread
    std::size_t left_ = 0;
    bool stopping_ = false;
    std::atomic<bool> passed_failed_calls_{false};
    std::thread thread_;
};

}  // namespace npushmem::run
