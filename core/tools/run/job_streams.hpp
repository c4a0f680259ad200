// SPDX-License-Identifier: BSD-3-Clause
// Standard streams of a job: output and errors of PEs, tags of their lines, and the input of PE 0.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/poller.hpp"
#include "core/tools/run/dispatching_poller.hpp"

namespace npushmem::run {

// The launcher's standard output or error. Writing never blocks the launcher: text that the reader does not take yet
// waits here.
class OutputSink {
public:
    // Above this much waiting text the launcher stops reading from PEs.
    static constexpr std::size_t high_water = std::size_t{1} << 20;

    // The caller keeps ownership of `descriptor`. Terminals and pipes are opened a second time, because O_NONBLOCK on
    // the descriptor itself would change it for every process that shares it.
    explicit OutputSink(int descriptor);

    [[nodiscard]] std::string& text() { return waiting_; }
    // Writes as much as the reader takes now.
    void flush();

    [[nodiscard]] int fd() const { return own_.valid() ? own_.get() : shared_; }
    [[nodiscard]] bool idle() const { return waiting_.empty(); }
    [[nodiscard]] bool full() const { return waiting_.size() > high_water; }
    // The reader has closed or the file is full: text is dropped from now on.
    [[nodiscard]] bool broken() const { return error_ != 0; }
    // The errno of the failure; 0 while no text is lost.
    [[nodiscard]] int error() const { return error_; }

private:
    int shared_;
    FileDescriptor own_;
    bool socket_ = false;
    int error_ = 0;
    std::string waiting_;
};

// Puts a tag in front of every line of one PE's stream. It emits whole lines only, so lines of different PEs never mix.
class LinePrefixer {
public:
    static constexpr std::size_t longest_line = std::size_t{1} << 20;

    // Lines above `limit` bytes are broken into tagged pieces of that size: a PE that never writes a newline must not
    // fill the launcher's memory.
    explicit LinePrefixer(std::string tag, std::size_t limit = longest_line) : tag_(std::move(tag)), limit_(limit) {}

    // Appends the lines completed by `bytes` to `out`, each with its tag and newline.
    void feed(std::string_view bytes, std::string& out);
    // The stream has ended: emits the rest with a newline.
    void finish(std::string& out);

private:
    void emit(std::string& out);

    std::string tag_;
    std::size_t limit_;
    std::string partial_;  // at most limit_ bytes, no newline in it
};

// Reads the PEs' standard output and error from pipes and writes them line by line, tagged, to the launcher's own.
class TaggedOutput {
public:
    // Both must outlive this object.
    TaggedOutput(DispatchingPoller& poller, OutputSink& output, OutputSink& errors);
    TaggedOutput(const TaggedOutput&) = delete;
    TaggedOutput& operator=(const TaggedOutput&) = delete;
    ~TaggedOutput();

    Status add(int pe, FileDescriptor output, FileDescriptor errors);
    // Call this after the sinks were flushed: resumes streams that were paused because a sink was full.
    void resume();
    // All writers have ended: reads the rest of their pipes, whatever the sinks' size, and ends every stream.
    void finish();

private:
    struct Stream {
        FileDescriptor pipe;
        LinePrefixer lines;
        OutputSink* sink;
    };

    Status add_stream(int pe, FileDescriptor pipe, OutputSink& sink);
    void readable(int fd);
    enum class Reading { some, nothing, ended };
    static Reading read_some(Stream& stream);
    void end(int fd);

    DispatchingPoller& poller_;
    OutputSink& output_;
    OutputSink& errors_;
    std::map<int, Stream> streams_;  // by descriptor
    std::vector<int> paused_;        // descriptors taken out of the poller
};

// Forwards the terminal's input to PE 0, which is in another session and cannot read the terminal itself. Used only
// when standard input is a terminal; PE 0 inherits any other standard input.
class InputRelay {
public:
    // `to`: the writing end of PE 0's input.
    InputRelay(DispatchingPoller& poller, int terminal, FileDescriptor to);
    InputRelay(const InputRelay&) = delete;
    InputRelay& operator=(const InputRelay&) = delete;
    ~InputRelay() { close(); }

    // Starts reading once the launcher is in the terminal's foreground: a background process that reads is stopped.
    void resume_in_foreground();
    // Is it waiting for the foreground? No event reports that, so the caller must call resume_in_foreground()
    // periodically.
    [[nodiscard]] bool waiting_for_foreground() const { return to_.valid() && !reading_ && waiting_.empty(); }
    void close();

private:
    [[nodiscard]] bool in_foreground() const;
    void read_terminal();
    void write_pipe();
    void stop_reading();

    DispatchingPoller& poller_;
    int terminal_;
    FileDescriptor to_;
    bool reading_ = false;
    std::string waiting_;  // read, but not yet taken by PE 0; reading pauses until it is empty
};

}  // namespace npushmem::run
