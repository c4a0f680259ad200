// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/bootstrap/ranks.hpp"

#include <sys/prctl.h>
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

#include "tests/contract/bootstrap/run_case.hpp"

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

Rank::Rank(const BootstrapSubject& subject, int nranks, int number, RankBoard& board)
    : subject_(subject), host_(host_of(subject)), nranks_(nranks), number_(number), board_(&board) {
    host_.set("PE", std::to_string(number));
    host_.set("NPES", std::to_string(nranks));
}

Result<std::unique_ptr<Bootstrap>> Rank::open() {
    if (board_ == nullptr) return open_as(-1, -1, nullptr);
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
    if (number_ == 0 && !board_->has_id(own_job)) {
        JobId made{};
        const Status status = make_id(made);
        board_->publish_id(own_job, status, made);
    }
    return board_->await_id(own_job, 0);
}

void Rank::die() {
    board_->doom(number_);
    (void)::kill(::getpid(), SIGKILL);
    std::abort();  // not reached
}

void Rank::kill(int rank) {
    board_->doom(rank);
    if (!board_->has_ended(rank)) (void)::kill(board_->process_of(rank), SIGKILL);
    board_->await_end(rank);
}

void Rank::await_sleep_of(int rank) const {
    const pid_t process = board_->process_of(rank);
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

struct ForkedRank {
    std::optional<OutputFile> output;  // none if the output is passed on
    pid_t process = -1;
    bool running = false;
};

class RankSupervisor {
public:
    RankSupervisor(const BootstrapSubject& subject, int ranks, RankOutput output)
        : subject_(subject), board_(ranks), output_(output) {}
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
        result_.skipped = board_.skip_reason();
        return result_;
    }

private:
    void start(const std::function<int(Rank&)>& body) {
        std::fflush(nullptr);  // the ranks would print it again
        const pid_t supervisor = ::getpid();
        for (int rank = 0; rank < board_.ranks(); ++rank) {
            ForkedRank& each = ranks_.emplace_back();
            if (output_ == RankOutput::captured) each.output.emplace();
            each.process = ::fork();
            if (each.process == 0) std::exit(run_rank(rank, each.output, supervisor, body));
            if (each.process < 0) {
                fail(rank, std::string("could not be started: ") + std::strerror(errno));
                board_.ended(rank);
                continue;
            }
            // In one group, so that one waitpid awaits all of them and no other process. Both sides set it: neither
            // may run first.
            if (group_ == 0) group_ = each.process;
            (void)::setpgid(each.process, group_);
            each.running = true;
            ++running_;
            board_.started(rank, each.process);
        }
    }

    int run_rank(int rank, const std::optional<OutputFile>& output, pid_t supervisor,
                 const std::function<int(Rank&)>& body) {
        (void)::setpgid(0, group_);
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != supervisor) return 1;
        (void)std::signal(SIGPIPE, SIG_DFL);  // a bootstrap that causes it must fail visibly
        if (output) {
            (void)::dup2(output->descriptor(), STDOUT_FILENO);
            (void)::dup2(output->descriptor(), STDERR_FILENO);
        }
        Rank me(subject_, board_.ranks(), rank, board_);
        const int status = body(me);
        std::fflush(nullptr);
        board_.finished(rank);
        // The process that has made the job's id must live until open has returned on all ranks.
        for (int other = 1; other < board_.ranks() && rank == 0; ++other) board_.await_finish(other);
        return status;
    }

    // Returns whether a rank has ended.
    bool reap() {
        int status = 0;
        const pid_t ended = ::waitpid(-group_, &status, WNOHANG);
        if (ended <= 0) return false;
        const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                        [ended](const ForkedRank& each) { return each.process == ended; });
        const int rank = static_cast<int>(found - ranks_.begin());
        found->running = false;
        --running_;
        judge(rank, status);
        board_.ended(rank);
        return true;
    }

    void judge(int rank, int status) {
        if (killed_late_) return;
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        const bool exited_well =
            WIFEXITED(status) && (WEXITSTATUS(status) == rank_succeeded || WEXITSTATUS(status) == rank_skipped);
        if (board_.is_doomed(rank) ? killed : exited_well) return;
        fail(rank, describe_end(status) + (board_.is_doomed(rank) ? " before the case could kill it" : ""));
    }

    void kill_late_ranks(std::chrono::seconds deadline) {
        if (killed_late_) return;
        killed_late_ = true;
        // A rank that has finished only waits for the others, or its process cannot exit.
        bool all_finished = true;
        for (int rank = 0; rank < board_.ranks(); ++rank)
            if (at(rank).running && !board_.has_finished(rank)) all_finished = false;
        for (int rank = 0; rank < board_.ranks(); ++rank)
            if (at(rank).running && (all_finished || !board_.has_finished(rank)))
                fail(rank, "still ran after " + std::to_string(deadline.count()) + " s");
        (void)::kill(-group_, SIGKILL);
    }

    void fail(int rank, const std::string& how) {
        ++result_.failed;
        result_.report += "rank " + std::to_string(rank) + " " + how + "\n";
        if (at(rank).output) result_.report += at(rank).output->text();
    }

    ForkedRank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    const BootstrapSubject& subject_;
    RankBoard board_;
    RankOutput output_;
    std::deque<ForkedRank> ranks_;
    pid_t group_ = 0;
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
