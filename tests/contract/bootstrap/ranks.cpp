// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/bootstrap/ranks.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "tests/contract/case_process.hpp"
#include "tests/contract/case_runner.hpp"

namespace npushmem::contract {
namespace {

using Clock = std::chrono::steady_clock;

// Limit of the wait for a rank that has failed a case; the subject's own variables override it.
constexpr const char* default_timeout = "20s";

// Kept until the process ends: a service that get_uniqueid has started may use its host until then.
fakes::FakeHost& host_of(const BootstrapSubject& subject) {
    static auto* const hosts = new std::deque<fakes::FakeHost>;
    fakes::FakeHost& host = hosts->emplace_back();
    host.set("BOOTSTRAP_TIMEOUT", default_timeout);
    for (const auto& [name, value] : subject.config) host.set(name, value);
    return host;
}

npushmem_bootstrap_params params_of(int rank, int nranks, const JobId* id) {
    npushmem_bootstrap_params params{};
    params.struct_size = sizeof params;
    params.rank = rank;
    params.nranks = nranks;
    params.uniqueid = id == nullptr ? nullptr : id->data();
    return params;
}

// The letter of /proc/<pid>/stat after the command's name, which ends with the last parenthesis.
char state_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto end = line.rfind(')');
    return end == std::string::npos || end + 2 >= line.size() ? '?' : line[end + 2];
}

}  // namespace

Rank::Rank(const BootstrapSubject& subject, int nranks) : subject_(subject), host_(host_of(subject)), nranks_(nranks) {}

Rank::Rank(const BootstrapSubject& subject, int nranks, int number, SharedRankState& shared)
    : subject_(subject), host_(host_of(subject)), nranks_(nranks), number_(number), shared_(&shared) {
    host_.set("PE", std::to_string(number));
    host_.set("NPES", std::to_string(nranks));
}

Result<std::unique_ptr<Bootstrap>> Rank::open() {
    if (shared_ == nullptr) return open_as(-1, -1, nullptr);
    const auto made = id();
    if (made.ok()) return open_as(number_, nranks_, &made.value());
    // A bootstrap without ids may not need them: its configuration connects its ranks.
    if (made.status().code() == Code::unsupported) return open_as(number_, nranks_, nullptr);
    return made.status().within("the id of the job");
}

Result<std::unique_ptr<Bootstrap>> Rank::open_as(int rank, int nranks, const JobId* id) const {
    auto opened = subject_.open(host_.table(), params_of(rank, nranks, id));
    if (opened.ok() && opened.value() == nullptr)
        return Status{Code::plugin_refused, "open of the bootstrap returned neither an instance nor a failure"};
    return opened;
}

Status Rank::make_id(JobId& id) const {
    if (!subject_.get_uniqueid) return {Code::unsupported, "the bootstrap makes no ids"};
    return subject_.get_uniqueid(host_.table(), id);
}

// Rank 0 makes the id in its own process, after the fork, because this may start a thread.
Result<JobId> Rank::id() {
    constexpr int own_job = 0;
    if (number_ == 0 && !shared_->has_id(own_job)) {
        JobId made{};
        const Status status = make_id(made);
        shared_->publish_id(own_job, status, made);
    }
    return shared_->await_id(own_job, 0);
}

void Rank::die() {
    shared_->expect_kill(number_);
    (void)::kill(::getpid(), SIGKILL);
    std::abort();  // not reached
}

void Rank::kill(int rank) {
    shared_->expect_kill(rank);
    if (!shared_->has_ended(rank)) (void)::kill(shared_->process_of(rank), SIGKILL);
    shared_->await_end(rank);
}

void Rank::await_sleep_of(int rank) const {
    const pid_t process = shared_->process_of(rank);
    int asleep = 0;
    for (int look = 0; look < 200 && asleep < 3; ++look) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        asleep = state_of(process) == 'S' ? asleep + 1 : 0;
    }
}

void Rank::await_kill() const {
    for (;;) ::pause();
}

namespace {

// A file without a name that receives the output of a rank. descriptor() is -1 if the system has no more descriptors.
class OutputFile {
public:
    [[nodiscard]] int descriptor() const { return file_.get(); }
    // Returns the end of the file, which a failure quotes.
    [[nodiscard]] std::string text() const {
        constexpr std::size_t limit = 16 << 10;
        struct stat facts {};
        if (descriptor() < 0 || ::fstat(descriptor(), &facts) != 0) return {};
        const auto size = static_cast<std::size_t>(facts.st_size);
        std::string out(std::min(size, limit), '\0');
        const auto got = ::pread(descriptor(), out.data(), out.size(), static_cast<off_t>(size - out.size()));
        out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return size > out.size() ? "[...]" + out : out;
    }

private:
    Descriptor file_{::memfd_create("contract-output", MFD_CLOEXEC)};
};

struct ForkedRank {
    std::optional<OutputFile> output;  // none if the output is passed on
    pid_t process = -1;
    bool running = false;
};

class RankSupervisor {
public:
    RankSupervisor(const BootstrapSubject& subject, int ranks, RankOutput output)
        : subject_(subject), shared_(ranks), output_(output) {}
    RankSupervisor(const RankSupervisor&) = delete;
    RankSupervisor& operator=(const RankSupervisor&) = delete;
    ~RankSupervisor() = default;

    RanksResult run(std::chrono::seconds deadline, const std::function<int(Rank&)>& body) {
        start(body);
        const auto until = Clock::now() + deadline;
        while (running_ > 0) {
            if (reap()) continue;
            if (Clock::now() > until) kill_late_ranks(deadline);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        result_.skipped = shared_.skip_reason();
        return result_;
    }

private:
    void start(const std::function<int(Rank&)>& body) {
        // A program can inherit that SIGCHLD is ignored; then the system drops the ends of the ranks.
        (void)std::signal(SIGCHLD, SIG_DFL);
        std::fflush(nullptr);  // the ranks would print it again
        const pid_t supervisor = ::getpid();
        for (int rank = 0; rank < shared_.ranks(); ++rank) {
            ForkedRank& each = ranks_.emplace_back();
            if (output_ == RankOutput::captured) each.output.emplace();
            each.process = ::fork();
            if (each.process == 0) std::exit(run_rank(rank, each.output, supervisor, body));
            if (each.process < 0) {
                fail(rank, std::string("could not be started: ") + std::strerror(errno));
                shared_.ended(rank);
                continue;
            }
            each.running = true;
            ++running_;
            shared_.started(rank, each.process);
        }
    }

    int run_rank(int rank, const std::optional<OutputFile>& output, pid_t supervisor,
                 const std::function<int(Rank&)>& body) noexcept {
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != supervisor) return 1;
        (void)std::signal(SIGPIPE, SIG_DFL);  // a bootstrap that causes it must fail visibly
        if (output) {
            (void)::dup2(output->descriptor(), STDOUT_FILENO);
            (void)::dup2(output->descriptor(), STDERR_FILENO);
        }
        print_results();  // for the report
        Rank me(subject_, shared_.ranks(), rank, shared_);
        const int status = body(me);
        std::fflush(nullptr);
        shared_.finished(rank);
        // The process that has made the job's id must live until open has returned on all ranks.
        for (int other = 1; other < shared_.ranks() && rank == 0; ++other) shared_.await_finish(other);
        return status;
    }

    // Returns whether a process has ended. The ranks stay in the group of this process, so that a supervisor that is
    // itself the process of a case ends with all of them.
    bool reap() {
        int status = 0;
        const pid_t ended = ::waitpid(0, &status, WNOHANG);
        if (ended < 0 && errno == ECHILD) give_up_lost_ranks();
        if (ended <= 0) return false;
        const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                        [ended](const ForkedRank& each) { return each.process == ended; });
        if (found == ranks_.end()) return true;  // started by the subject
        const int rank = static_cast<int>(found - ranks_.begin());
        found->running = false;
        --running_;
        judge(rank, status);
        shared_.ended(rank);
        return true;
    }

    void give_up_lost_ranks() {
        for (int rank = 0; rank < shared_.ranks(); ++rank) {
            if (!at(rank).running) continue;
            at(rank).running = false;
            --running_;
            fail(rank, "was reaped by another part of the program, so its exit status is lost");
            shared_.ended(rank);
        }
    }

    void judge(int rank, int status) {
        if (killed_late_) return;
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        const bool exited_well =
            WIFEXITED(status) && (WEXITSTATUS(status) == rank_succeeded || WEXITSTATUS(status) == rank_skipped);
        const bool kill_expected = shared_.is_kill_expected(rank);
        const bool finished = shared_.has_finished(rank);
        if (kill_expected ? killed : exited_well && finished) return;
        std::string how = describe_end(status);
        if (kill_expected)
            how += " before the case could kill it";
        else if (!finished)
            how += " before the case had finished";
        fail(rank, how);
    }

    void kill_late_ranks(std::chrono::seconds deadline) {
        if (killed_late_) return;
        killed_late_ = true;
        // A rank that has finished only waits for the others, or its process cannot exit.
        bool all_finished = true;
        for (int rank = 0; rank < shared_.ranks(); ++rank)
            if (at(rank).running && !shared_.has_finished(rank)) all_finished = false;
        for (int rank = 0; rank < shared_.ranks(); ++rank)
            if (at(rank).running && (all_finished || !shared_.has_finished(rank)))
                fail(rank, "still ran after " + std::to_string(deadline.count()) + " s");
        for (const ForkedRank& each : ranks_)
            if (each.running) (void)::kill(each.process, SIGKILL);
    }

    void fail(int rank, const std::string& how) {
        ++result_.failed;
        result_.report += "rank " + std::to_string(rank) + " " + how +
                          (at(rank).process > 0 ? " (pid " + std::to_string(at(rank).process) + ")\n" : "\n");
        if (at(rank).output) result_.report += at(rank).output->text();
    }

    ForkedRank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    const BootstrapSubject& subject_;
    SharedRankState shared_;
    RankOutput output_;
    std::deque<ForkedRank> ranks_;
    int running_ = 0;
    bool killed_late_ = false;
    RanksResult result_;
};

}  // namespace

RanksResult run_ranks(const BootstrapSubject& subject, int ranks, std::chrono::seconds deadline, RankOutput output,
                      const std::function<int(Rank&)>& body) {
    return RankSupervisor(subject, ranks, output).run(deadline, body);
}

}  // namespace npushmem::contract
