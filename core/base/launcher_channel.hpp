// SPDX-License-Identifier: BSD-3-Clause
// The channel from a PE to npushmem-run. The variable NPUSHMEM_LAUNCHER_FD describes it:
//
//     <pipe>:<device>:<inode>,<log>:<device>:<inode>,<offset>,<device>:<inode>
//
// Requests are short lines on the pipe. Records of any length are appended to the log, a file in memory: there no PE
// waits for a slow launcher, and a record outlives both its PE and the launcher. The beginning of the log has a counter
// of failed calls for each PE, this PE's at <offset>. The last pair identifies the standard error that the PE
// inherited from the launcher. A program may close or reuse inherited descriptors; the devices and inodes reveal that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npushmem {

// npushmem-run's value of NPUSHMEM_BOOTSTRAP, unless the user has set one.
inline constexpr const char* launcher_bootstrap = "UID";

struct LauncherRecord {
    // From `message` on, npushmem-run on a host of the job sends them to the launcher of the whole job.
    enum class Kind : char {
        line = 'l',
        failed_calls = 'f',
        message = 'm',
        ended = 'e',          // a PE exited without a failure
        request = 'r',        // from a PE that cannot continue
        outcome = 'o',        // how the PEs of the host ended: core/tools/run/exit_record.hpp
        exits_flushed = 'k',  // all exits before flush_exits_signal have been reported
    };

    Kind kind = Kind::line;
    int pe = -1;         // -1: unknown; for the last three kinds, the first PE of the host
    std::string prefix;  // of a line; may be empty
    std::string text;    // by kind: the line without its prefix, the number of failed calls, how the PE ended, the
                         // request, the status

    // The first and the last byte appear in no text.
    [[nodiscard]] std::string encode() const;
    // Decodes a record without its last byte. Ignores all text before its first byte: a PE that was killed while it
    // wrote left it there.
    static std::optional<LauncherRecord> decode(std::string_view record);

    static constexpr char begin = '\x02';
    static constexpr char end = '\0';

    friend bool operator==(const LauncherRecord&, const LauncherRecord&) = default;
};

class LauncherChannel {
public:
    // A malformed description gives a channel that accepts nothing.
    explicit LauncherChannel(std::string_view description);
    // Reads the process environment at the first call, also when the rest of the configuration is malformed. Later
    // calls do not read it, so they are safe in any thread while another thread changes the environment.
    static LauncherChannel of_process();
    // Returns NPUSHMEM_PE, or -1. Reads the environment like of_process().
    static int own_pe();

    // Both return false when the launcher does not receive it.
    [[nodiscard]] bool request(std::string_view line) const;
    [[nodiscard]] bool append(const LauncherRecord& record) const;
    // Maps this PE's counter of failed calls, until the process ends. Null when the launcher has none.
    [[nodiscard]] std::int64_t* map_failed_calls() const;
    // Returns whether standard error still is the one from the launcher, not redirected by the program or a script.
    [[nodiscard]] bool has_launcher_stderr() const;

private:
    int pipe_ = -1;
    int log_ = -1;
    std::int64_t counter_ = -1;
    std::uint64_t stderr_device_ = 0;
    std::uint64_t stderr_inode_ = 0;
};

}  // namespace npushmem
