// The launcher's end of the log that core/base/launcher_channel.hpp describes. Launcher, supervisor and PEs share the
// file; launcher and supervisor also share a position in it: everything before has been shown to the user. When the
// launcher is gone, the supervisor shows the rest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/launcher_channel.hpp"
#include "core/tools/run/fd.hpp"

namespace npushmem::run {

class JobLog {
public:
    // Without memory or descriptors for it, or above the limit of file sizes, the log is not open: PEs then write to
    // standard error themselves.
    static JobLog create(int pes);
    JobLog() = default;

    [[nodiscard]] bool open() const { return file_.open(); }
    // The part of NPUSHMEM_LAUNCHER_FD that leads the PE with this index here; `errors`: the descriptor that becomes
    // its standard error. Empty when the log is not open.
    [[nodiscard]] std::string description(int index, int errors) const;

    // Whole records that have come since the last call.
    std::vector<LauncherRecord> read();
    // Everything that was read has been shown: its memory is freed.
    void mark_shown();
    // The launcher shows all records, also those that come later.
    void claim_for_launcher();
    // For the supervisor: the next read begins behind what has been shown.
    void continue_after_launcher();

    // By index; without those of PEs that had none.
    [[nodiscard]] std::map<int, std::int64_t> failed_calls() const;

private:
    void free_up_to(std::int64_t position);

    Fd file_;
    Fd position_;  // its file position is the one that launcher and supervisor share; not open without /proc
    int pes_ = 0;
    std::int64_t read_to_ = 0;
    std::int64_t freed_to_ = 0;
    std::string rest_;  // of a record that is not complete
    bool claimed_ = false;
};

}  // namespace npushmem::run
