// The channel from a PE to npushmem-run. The variable NPUSHMEM_LAUNCHER_FD describes it:
//
//     <pipe>:<device>:<inode>,<log>:<device>:<inode>,<offset>,<device>:<inode>
//
// Requests are short lines on the pipe. Records of any length are appended to the log, a file in memory: no PE waits
// for a slow launcher there, and a record outlives the PE that wrote it, and the launcher. The log's beginning holds a
// counter of failed calls for each PE, this PE's at <offset>. The last pair identifies the standard error that the
// launcher gave the PE. A program may close or reuse inherited descriptors: devices and inodes reveal that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npushmem {

struct LauncherRecord {
    // From `message` on they come from npushmem-run on a host of the job, for the launcher of the whole job.
    enum class Kind : char {
        line = 'l',
        failed_calls = 'f',
        message = 'm',
        ended = 'e',          // a PE has ended without a failure
        request = 'r',        // of a PE that cannot go on
        outcome = 'o',        // how the PEs of the host end: core/tools/run/outcome.hpp
        exits_flushed = 'k',  // all ends up to flush_exits_signal have been reported
    };

    Kind kind = Kind::line;
    int pe = -1;         // -1: not known; the first PE of the host in the last three kinds
    std::string prefix;  // of a line, may be empty
    std::string text;  // of a line, without the prefix; or the number of failed calls; or how the PE has ended; or the
                       // line of the request; or the status

    // Begins with a byte and ends with another that no text contains.
    [[nodiscard]] std::string encode() const;
    // `record` without its last byte; what precedes its first byte is ignored: a PE was killed while it wrote that.
    static std::optional<LauncherRecord> decode(std::string_view record);

    static constexpr char begin = '\x02';
    static constexpr char end = '\0';

    friend bool operator==(const LauncherRecord&, const LauncherRecord&) = default;
};

class LauncherChannel {
public:
    // A malformed description is a channel that takes nothing.
    explicit LauncherChannel(std::string_view description);
    // As the process environment has it at the first call, also when the rest of the configuration is malformed. Later
    // calls do not read the environment: any thread makes them, while another may change the environment.
    static LauncherChannel of_process();
    // NPUSHMEM_PE, or -1. The environment is read as for of_process().
    static int own_pe();

    // False: the launcher does not receive it.
    [[nodiscard]] bool request(std::string_view line) const;
    [[nodiscard]] bool append(const LauncherRecord& record) const;
    // Changes this PE's counter.
    [[nodiscard]] bool count_failed_calls(std::int64_t by) const;
    // Is standard error still what the launcher gave the PE? Otherwise the program or a script has redirected it.
    [[nodiscard]] bool has_launcher_stderr() const;

private:
    int pipe_ = -1;
    int log_ = -1;
    std::int64_t counter_ = -1;
    std::uint64_t stderr_device_ = 0;
    std::uint64_t stderr_inode_ = 0;
};

}  // namespace npushmem
