// Reads the PEs' standard output and error from pipes and writes them line by line, tagged, to the launcher's own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tools/run/fd.hpp"
#include "core/tools/run/line_prefixer.hpp"
#include "core/tools/run/output_sink.hpp"
#include "core/tools/run/poller.hpp"

namespace npushmem::run {

class TaggedOutput {
public:
    // Both must outlive this object.
    TaggedOutput(Poller& poller, OutputSink& output, OutputSink& errors);
    TaggedOutput(const TaggedOutput&) = delete;
    TaggedOutput& operator=(const TaggedOutput&) = delete;
    ~TaggedOutput();

    Status add(int pe, Fd output, Fd errors);
    // After text has left the sinks: goes on reading what was paused because a sink was full.
    void resume();
    // All writers are gone: takes what their pipes still hold, whatever the sinks' size, and ends every stream.
    void finish();

private:
    struct Stream {
        Fd pipe;
        LinePrefixer lines;
        OutputSink* sink;
    };

    Status add_stream(int pe, Fd pipe, OutputSink& sink);
    void readable(int fd);
    enum class Reading { some, nothing, ended };
    static Reading read_some(Stream& stream);
    void end(int fd);

    Poller& poller_;
    OutputSink& output_;
    OutputSink& errors_;
    std::map<int, Stream> streams_;  // by descriptor
    std::vector<int> paused_;        // descriptors taken out of the poller
};

}  // namespace npushmem::run
