// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/jobs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/host_facts.hpp"
#include "core/base/liveness.hpp"
#include "core/base/parking.hpp"
#include "core/base/poller.hpp"
#include "core/memory/host_memory.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

namespace fs = std::filesystem;

// Copies a control block while its PE may write it. The wait is consistent if its number did not change meanwhile; a
// copy without a wait results if every attempt met a write, for example of a PE that was killed in it. Returns false if
// the block cannot be read.
bool copy_control(int descriptor, std::uint64_t offset, ControlBlock& copy) {
    constexpr int attempts = 16;
    const auto at = static_cast<off_t>(offset);
    const auto sequence_at = static_cast<off_t>(offset + offsetof(ControlBlock, progress) +
                                                offsetof(ProgressRecord, wait));  // its first word
    for (int i = 0; i < attempts; ++i) {
        std::uint64_t sequence = 0;
        if (pread(descriptor, static_cast<void*>(&copy), sizeof copy, at) != sizeof copy ||
            pread(descriptor, &sequence, sizeof sequence, sequence_at) != sizeof sequence)
            return false;
        if (sequence % 2 == 0 && sequence == copy.progress.wait.sequence()) return true;
    }
    copy.progress.wait.write({});
    return true;
}

// The texts come from another process and go to a terminal.
template <std::size_t Size>
void make_printable(std::array<char, Size>& text) {
    for (char& c : text)
        if (c != 0 && std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
}

PeInProgress read_pe(const ControlBlock& control) {
    const ProcessId process{static_cast<pid_t>(control.process), control.process_start};
    PeInProgress pe{process.pid, progress_of(control, process.pid == 0 || is_alive(process))};
    if (pe.progress.wait) {
        make_printable(pe.progress.wait->call);
        make_printable(pe.progress.wait->what);
        make_printable(pe.progress.wait->team);
    }
    return pe;
}

std::string program_of(int process) {
    std::string name = system_files()(fmt::format("/proc/{}/comm", process)).value_or("");
    name.erase(std::remove_if(name.begin(), name.end(), [](unsigned char c) { return std::isprint(c) == 0; }),
               name.end());
    return name;
}

JobInProgress& job_of(const ControlBlock& control, std::vector<JobInProgress>& jobs) {
    const ProcessId first{control.first_process, control.first_process_start};
    const auto known =
        std::ranges::find_if(jobs, [&](const auto& job) { return job.first == first && job.npes == control.npes; });
    if (known != jobs.end()) return *known;
    jobs.push_back({{}, control.npes, first, {}});
    return jobs.back();
}

// Symmetric memory is anonymous, or an unnamed file: "/folder/#<inode> (deleted)".
bool may_be_symmetric_memory(const std::string& link) {
    return link.starts_with("/memfd:npushmem") ||
           (link.ends_with(" (deleted)") && link.find("/#") != std::string::npos);
}

// Examines processes one after another.
class Search {
public:
    explicit Search(JobsReport& report) : report_(report) {}

    void examine(const fs::path& process) {
        struct stat facts {};
        if (stat(process.c_str(), &facts) != 0) return;  // it has ended
        if (facts.st_uid != geteuid()) {
            ++others_;
            return;
        }
        std::error_code error;
        fs::directory_iterator files(process / "fd", error);
        if (error == std::errc::permission_denied) ++unreadable_;
        for (; !error && files != fs::directory_iterator(); files.increment(error)) examine_file(files->path());
    }

    void add_notes() {
        if (others_ > 0) report_.notes.push_back(fmt::format("{} processes of other users were not examined", others_));
        if (unreadable_ > 0)
            report_.notes.push_back(
                fmt::format("{} processes of this user do not let others read their memory", unreadable_));
    }

private:
    void examine_file(const fs::path& path) {
        std::error_code error;
        const std::string link = fs::read_symlink(path, error).string();
        struct stat facts {};
        if (error || !may_be_symmetric_memory(link) || stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
            !seen_.emplace(facts.st_dev, facts.st_ino).second)
            return;
        const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file.valid()) return;
        if (const Status read = read_segment(file.get(), report_.jobs); !read.ok())
            report_.notes.push_back(fmt::format("the shared memory {} was skipped: {}", path.string(), read.message()));
    }

    JobsReport& report_;
    std::set<std::pair<dev_t, ino_t>> seen_;
    int others_ = 0;
    int unreadable_ = 0;
};

std::string describe_absent(const JobInProgress& job) {
    std::vector<std::uint32_t> absent;
    for (int pe = 0; pe < job.npes; ++pe)
        if (std::ranges::find(job.pes, pe, [](const PeInProgress& one) { return one.progress.pe; }) == job.pes.end())
            absent.push_back(static_cast<std::uint32_t>(pe));
    if (absent.empty()) return {};
    return fmt::format("  PE{} {} run{} on other hosts or {} not started\n", absent.size() == 1 ? "" : "s",
                       topology::pe_ranges(absent), absent.size() == 1 ? "s" : "", absent.size() == 1 ? "has" : "have");
}

std::string describe_job(const JobInProgress& job, std::int64_t now) {
    std::string text = fmt::format("Job of {} PE{}: {}, PE 0 is process {}\n", job.npes, job.npes == 1 ? "" : "s",
                                   job.program.empty() ? "a program that has ended" : job.program, job.first.pid);
    std::vector<std::vector<std::string>> rows{{"PE", "process", "state", "for", "in", "waits for"}};
    for (const PeInProgress& pe : job.pes) {
        std::vector<std::string> row{std::to_string(pe.progress.pe), std::to_string(pe.process),
                                     state_text(pe.progress)};
        if (pe.progress.wait) {
            row.push_back(fmt::format("{:.1f} s", static_cast<double>(now - pe.progress.wait->since) * 1e-9));
            row.push_back(describe_call(*pe.progress.wait));
            row.push_back(describe_condition(*pe.progress.wait));
        } else {
            row.insert(row.end(), {"", fmt::format("(#{} of the team world)", pe.progress.world_calls), ""});
        }
        rows.push_back(std::move(row));
    }
    text += topology::render_table(rows, 2);
    for (const std::string& sentence : disagreements_of(job)) text += fmt::format("  {}\n", sentence);
    return text + describe_absent(job);
}

}  // namespace

Status read_segment(int descriptor, std::vector<JobInProgress>& jobs) {
    const auto layout = read_host_memory_layout(descriptor);
    if (!layout.ok()) return layout.status();
    if (!layout.value()) return {};
    for (int i = 0; i < layout.value()->local_pes; ++i) {
        ControlBlock control{};
        if (!copy_control(descriptor, layout.value()->control_offset(i), control))
            return {Code::protocol, fmt::format("its PE {} of {} cannot be read", i, layout.value()->local_pes)};
        if (control.magic == 0) continue;  // this PE has not yet made its control block
        if (control.magic != control_magic || control.version != control_version || control.pe < 0 ||
            control.pe >= control.npes)
            return {Code::protocol, fmt::format("its control block of PE {} is malformed", i)};
        JobInProgress& job = job_of(control, jobs);
        job.pes.push_back(read_pe(control));
        if (job.program.empty() && job.pes.back().progress.alive) job.program = program_of(job.pes.back().process);
    }
    return {};
}

JobsReport find_jobs() {
    JobsReport report;
    Search search(report);
    const std::vector<pid_t> processes = list_processes();  // at least this one
    for (const pid_t process : processes) search.examine(fmt::format("/proc/{}", process));
    if (processes.empty()) report.notes.push_back("/proc cannot be read, so jobs cannot be found: mount it");
    search.add_notes();
    for (JobInProgress& job : report.jobs)
        std::ranges::sort(job.pes, {}, [](const PeInProgress& pe) { return pe.progress.pe; });
    report.now = SystemWaitOs().now().count();
    return report;
}

std::string state_text(const PeProgress& pe) {
    if (!pe.alive) return "ended";
    if (pe.state == PeState::starting) return "starting";
    if (pe.state == PeState::finalized) return "finalized";
    return pe.wait ? "waiting" : "running";
}

std::vector<std::string> disagreements_of(const JobInProgress& job) {
    std::vector<PeProgress> pes;
    for (const PeInProgress& pe : job.pes) pes.push_back(pe.progress);
    return describe_disagreements(pes, job.npes);
}

std::string describe(const JobsReport& report) {
    std::string text;
    for (const JobInProgress& job : report.jobs) text += describe_job(job, report.now);
    if (report.jobs.empty()) text += "No running job of this user on this host\n";
    for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
    return text;
}

}  // namespace npushmem::info
