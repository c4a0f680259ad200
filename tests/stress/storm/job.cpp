// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/poller.hpp"
#include "core/tools/run/processes.hpp"
#include "tests/stress/storm/hang.hpp"
#include "tests/stress/storm/surroundings.hpp"

namespace npushmem::storm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kill_limit{5};
constexpr int exit_no_limit = 97;

std::string plan_of(const Fault& fault) {
    std::string out;
    for (const auto& victim : fault.victims)
        out += fmt::format("{}{}|{}|{}|{}|{}", out.empty() ? "" : ";", victim.pe, victim.point, fault.kind->name,
                           victim.delay_us, fault.amount);
    return out;
}

std::vector<std::string> command_of(const Programs& programs, const Fault& fault) {
    std::vector<std::string> words = fault.launcher->before;
    if (fault.launcher->is_ours) words.insert(words.begin(), programs.run);
    words.push_back(std::to_string(fault.npes));
    words.insert(words.end(), fault.launcher->after.begin(), fault.launcher->after.end());
    if (fault.transports->needs_run) words.insert(words.end(), {"--nodes", "2"});
    words.push_back(programs.pe);
    return words;
}

class Job {
public:
    Job(const Programs& programs, const Fault& fault, const std::string& folder, std::chrono::seconds stall_limit)
        : fault_(fault), folder_(folder), report_path_(folder + "/report"), end_after_(stall_limit + grace) {
        result_.stall_limit = stall_limit;
        output_ = FileDescriptor(::memfd_create("output", MFD_CLOEXEC));
        (void)::fcntl(output_.get(), F_SETFL, O_APPEND);
        (void)::mkfifo(report_path_.c_str(), 0666);
        (void)::chmod(report_path_.c_str(), 0666);
        reports_ = FileDescriptor(::open(report_path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        began_ = fault_time_ = Clock::now();
        launcher_ = ::fork();
        if (launcher_ == 0) become_launcher(command_of(programs, fault));
        process_ = open_pidfd(launcher_);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job() { (void)::unlink(report_path_.c_str()); }

    JobResult finish() {
        while (!launcher_ended_) watch_once();
        reap_all();
        read_reports();
        result_.took = Clock::now() - fault_time_;
        (void)run::kill_descendants(kill_limit);
        result_.output = contents();
        return std::move(result_);
    }

private:
    [[noreturn]] void become_launcher(std::vector<std::string> words) {
        ::setpgid(0, 0);
        const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        ::dup2(null.get(), 0);
        ::dup2(output_.get(), 1);
        ::dup2(output_.get(), 2);
        set_environment();
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        const std::string why_not = fault_.kind->whole_job ? limit_job(fault_) : "";
        if (!why_not.empty()) {
            (void)!::write(2, why_not.data(), why_not.size());
            ::_exit(exit_no_limit);
        }
        std::vector<char*> pointers;
        for (auto& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        ::execvp(pointers[0], pointers.data());
        ::_exit(exit_no_limit);
    }

    void set_environment() const {
        for (const char* setting :
             {"NPUSHMEM_SYMMETRIC_SIZE=8M", "NPUSHMEM_BOOTSTRAP_TIMEOUT=2s", "NPUSHMEM_TCP_IFNAME=lo",
              "NPUSHMEM_LIBFABRIC_DOMAIN=lo", "NPUSHMEM_UCX_NET_DEVICES=lo", "UCX_NET_DEVICES=lo",
              "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"})
            ::putenv(const_cast<char*>(setting));
        if (fault_.kind->effect == Effect::survived) ::putenv(const_cast<char*>("NPUSHMEM_ON_PEER_DEATH=survive"));
        for (const auto& setting : fault_.transports->environment) ::putenv(const_cast<char*>(setting.c_str()));
        const auto bootstrap_timeout = std::clamp<std::int64_t>(result_.stall_limit.count() / 4, 2, 15);
        ::setenv("NPUSHMEM_BOOTSTRAP_TIMEOUT", fmt::format("{}s", bootstrap_timeout).c_str(), 1);
        // A PE that waits for so long says for what.
        ::setenv("NPUSHMEM_REPORT_AFTER",
                 fmt::format("{}s", std::max<std::int64_t>(result_.stall_limit.count() - 1, 1)).c_str(), 1);
        ::setenv("TMPDIR", folder_.c_str(), 1);
        ::setenv("STORM_FAULTS", plan_of(fault_).c_str(), 1);
        ::setenv("STORM_REPORT", report_path_.c_str(), 1);
        ::setenv("STORM_LAUNCHER", std::to_string(::getpid()).c_str(), 1);
    }

    void watch_once() {
        std::array<pollfd, 2> events{pollfd{reports_.get(), POLLIN, 0}, pollfd{process_.get(), POLLIN, 0}};
        (void)::poll(events.data(), events.size(), time_to_wait());
        read_reports();
        const auto now = Clock::now();
        if (continue_at_ && now >= *continue_at_) end_stop();
        if (now > fault_time_ + end_after_ || now > began_ + 5 * end_after_) {
            result_.ended_by_storm = true;
            examine_hang();
            (void)run::kill_descendants(kill_limit);
            launcher_ended_ = true;
        } else if (events[1].revents != 0) {
            reap_launcher();
        }
    }

    [[nodiscard]] int time_to_wait() const {
        constexpr int longest = 1000;
        if (!continue_at_) return longest;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*continue_at_ - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left, 0, longest));
    }

    void examine_hang() {
        for (const int pe : result_.injected) result_.exit_waits_for_libc |= waits_for_libc_lock(result_.pids[pe]);
    }

    void reap_launcher() {
        int status = 0;
        if (::waitpid(launcher_, &status, 0) != launcher_) return;
        result_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        launcher_ended_ = true;
    }

    void read_reports() {
        std::array<char, 4096> bytes{};
        ssize_t count = 0;
        while ((count = ::read(reports_.get(), bytes.data(), bytes.size())) > 0)
            unread_.append(bytes.data(), static_cast<std::size_t>(count));
        for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
            handle_report(unread_.substr(0, end));
            unread_.erase(0, end + 1);
        }
    }

    void handle_report(const std::string& line) {
        std::istringstream fields(line);
        int pe = -1;
        int pid = -1;
        std::string word;
        std::int64_t time = 0;
        fields >> pe >> word >> pid >> time;
        result_.pids[pe] = pid;
        if (word == "verified") result_.verified.insert(pe);
        if (word == "finalized") result_.finalized.insert(pe);
        if (word == "cut") result_.cut = true;
        if (word != "fault" && word != "stopped") return;
        result_.injected.insert(pe);
        fault_time_ = Clock::time_point(std::chrono::nanoseconds(time));
        if (word == "stopped")
            stopped_ = pid, continue_at_ = Clock::now() + std::chrono::milliseconds(fault_.amount * 4);
        if (fault_.kind->name == "all-kill") kill_all();
    }

    void kill_all() {
        (void)::kill(launcher_, SIGSTOP);  // so that all are there when they are killed
        (void)run::kill_descendants(kill_limit);
        result_.status = 128 + SIGKILL;
        launcher_ended_ = true;
    }

    void end_stop() {
        (void)::kill(stopped_, fault_.kind->name == "stop-kill" ? SIGKILL : SIGCONT);
        fault_time_ = Clock::now();
        continue_at_.reset();
    }

    // Processes that outlive the launcher come to this process, the subreaper.
    void reap_all() {
        while (Clock::now() < fault_time_ + end_after_) {
            const int pid = ::waitpid(-1, nullptr, WNOHANG);
            if (pid < 0) return;
            if (pid == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (!result_.ended_by_storm) examine_hang();
        result_.left.push_back("processes that outlive the launcher");
    }

    [[nodiscard]] std::string contents() const {
        std::string out;
        std::array<char, 4096> bytes{};
        ssize_t count = 0;
        while ((count = ::pread(output_.get(), bytes.data(), bytes.size(), static_cast<off_t>(out.size()))) > 0)
            out.append(bytes.data(), static_cast<std::size_t>(count));
        return out;
    }

    static constexpr std::chrono::seconds grace{3};

    const Fault& fault_;
    const std::string& folder_;
    std::string report_path_;
    std::chrono::seconds end_after_;  // the storm ends the job this long after its fault
    FileDescriptor output_;
    FileDescriptor reports_;
    FileDescriptor process_;
    int launcher_ = -1;
    bool launcher_ended_ = false;
    Clock::time_point began_;
    Clock::time_point fault_time_;
    int stopped_ = -1;
    std::optional<Clock::time_point> continue_at_;
    std::string unread_;
    JobResult result_;
};

// Nobody is left to remove files if everything was killed at once: the next job does.
void run_next_job(const Programs& programs) {
    const int next = ::fork();
    if (next == 0) {
        ::execl(programs.run.c_str(), "npushmem-run", "-n", "1", "true", nullptr);
        ::_exit(exit_no_limit);
    }
    (void)::waitpid(next, nullptr, 0);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

JobResult run_job(const Programs& programs, const Fault& fault, const std::string& folder,
                  std::chrono::seconds stall_limit, bool is_private) {
    const auto sockets = present_sockets();
    JobResult result = Job(programs, fault, folder, stall_limit).finish();
    if (fault.kind->whole_job && result.status == exit_no_limit) {
        result.skipped = result.output;
        return result;
    }
    const bool swept = fault.launcher->is_ours && fault.kind->name != "all-kill";
    if (!swept) run_next_job(programs);
    const bool all_count = is_private && fault.launcher->is_ours;
    const auto add = [&](const std::set<std::string>& before, const std::set<std::string>& after) {
        for (const auto& entry : after)
            if (!before.contains(entry) && (all_count || last_part(entry).find("npushmem") != std::string_view::npos))
                result.left.push_back(entry);
    };
    if (is_private) add(sockets, present_sockets());
    add({}, present_files(folder));
    return result;
}

}  // namespace npushmem::storm
