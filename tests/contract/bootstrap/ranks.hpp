// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a case: forked processes, or this process as one rank of a job that a launcher has started.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/testing/contract.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "tests/contract/bootstrap/shared_rank_state.hpp"

namespace npushmem::contract {

// One rank, in its own process. The members from `number` on are for forked ranks only.
class Rank {
public:
    // A launcher has started this process: the bootstrap finds its rank. `nranks` is what the case expects.
    Rank(const BootstrapSubject& subject, int nranks);
    // A forked process, which knows its number.
    Rank(const BootstrapSubject& subject, int nranks, int number, SharedRankState& shared);

    [[nodiscard]] const BootstrapSubject& subject() const { return subject_; }
    [[nodiscard]] int nranks() const { return nranks_; }
    // Sets a variable, without NPUSHMEM_, before this rank opens the bootstrap.
    void set(const std::string& name, const std::string& value) { host_.set(name, value); }
    // Joins the job; again after the last instance is closed. Forked ranks pass their number, the number of ranks, and
    // an id that rank 0 makes at the first call; none if the bootstrap makes none.
    Result<std::unique_ptr<Bootstrap>> open();
    // Makes an id in this process; Code::unsupported if the bootstrap makes none.
    Status make_id(JobId& id) const;

    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] SharedRankState& shared() const { return *shared_; }
    // Joins a job as the given rank. `id` may be null.
    Result<std::unique_ptr<Bootstrap>> open_as(int rank, int nranks, const JobId* id) const;
    // The id of the job, made by rank 0, for all ranks.
    Result<JobId> id();
    // Ends the process by SIGKILL, which the supervisor expects.
    [[noreturn]] void die();
    // Kills another rank and waits until it has gone.
    void kill(int rank);
    // Waits until the process of that rank sleeps in a system call, at most about a second: a bootstrap may also wait
    // without sleeping. So the rank has probably got as far as it can by itself; cases must not rely on it.
    void await_sleep_of(int rank) const;
    // Waits until another rank kills this one.
    [[noreturn]] void await_kill() const;

private:
    const BootstrapSubject& subject_;
    fakes::FakeHost& host_;
    int nranks_;
    int number_ = -1;
    SharedRankState* shared_ = nullptr;
};

// Results of a rank's process; any other one is a failure.
inline constexpr int rank_succeeded = 0;
inline constexpr int rank_skipped = 77;

struct RanksResult {
    int failed = 0;       // number of ranks
    std::string report;   // of every rank that failed: how it ended, with its output
    std::string skipped;  // why a rank skipped the case; empty if none did
};

// `captured`: what the ranks print is quoted in the report of those that fail. `passed_on`: to this process's output.
enum class RankOutput { captured, passed_on };

// Runs `body` in `ranks` forked processes and waits for all; it returns the exit status. Kills those that run longer
// than `deadline`. The calling process must have no other thread that `body` needs or that holds locks.
RanksResult run_ranks(const BootstrapSubject& subject, int ranks, std::chrono::seconds deadline, RankOutput output,
                      const std::function<int(Rank&)>& body);

}  // namespace npushmem::contract
