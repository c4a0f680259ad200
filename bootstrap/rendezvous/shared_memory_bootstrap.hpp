// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap of a job whose ranks all run on one host: allgather and barrier through memory that they share.
//
// A collective is a sequence of rounds. In a round each rank writes its part, counts itself in, and sleeps on a futex
// until the last rank has come. Parts alternate between two buffers: a rank that writes into one of them has passed
// the round after the one that used it last, so all ranks have read it.
//
// The last rank to come compares the calls of all. The first rank to find a failure writes it into the memory and wakes
// the others: a rank that aborted, a different call, a rank that has left or whose process has ended, or a time-out. A
// process that executes another program without leaving is found by the time-out only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/job_memory.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "core/base/parking.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

class SharedMemoryBootstrap final : public Bootstrap {
public:
    // For each rank. `timeout` limits each collective; 0: none. Code::state if the rank was used before in this memory.
    static Result<std::unique_ptr<SharedMemoryBootstrap>> open(JobMemory memory, const Identity& me,
                                                               Milliseconds timeout);
    // Leaves the job, without waiting.
    ~SharedMemoryBootstrap() override;

    // The barrier of the job's start: afterwards all ranks have attached. If they have joined the rendezvous service
    // before, it reports ranks that never attach: `service_failure` is called now and then, and its failure ends the
    // wait.
    Status opening_barrier(Deadline deadline, const std::function<Status()>& service_failure = {});
    // Was the memory refused before all ranks had attached? Then the opening barrier has failed.
    [[nodiscard]] bool is_refused() const { return memory_.state() == JobMemory::State::refused; }

    [[nodiscard]] int rank() const override { return me_.rank; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    Status barrier() override;
    void abort(const std::string& reason) override;
    Status check() override;

private:
    using Call = CollectiveCall;
    using Header = JobMemory::Header;
    using RankState = JobMemory::RankState;

    SharedMemoryBootstrap(JobMemory memory, const Identity& me, Milliseconds timeout);

    [[nodiscard]] Header& header() const { return memory_.header(); }
    [[nodiscard]] RankState& state_of(int rank) const { return memory_.state_of(rank); }

    [[nodiscard]] Deadline deadline() const;
    Status pass_round(const Call& call, Deadline deadline, const std::function<Status()>& service_failure = {});
    Status await_others(const Call& call, Deadline deadline, const std::function<Status()>& service_failure);
    Status compare_calls();
    // Returns a rank that has not entered the current round and has left; -1: none.
    [[nodiscard]] int find_left() const;
    // Returns a rank that has not left and whose process has ended; -1: none. Any thread.
    [[nodiscard]] int find_ended() const;
    [[nodiscard]] bool has_entered(int rank) const;
    // "rank 3 (pid 123 on host x)"; "rank 3" if it has not attached.
    [[nodiscard]] std::string name_of(int rank) const;
    [[nodiscard]] Status refused() const;
    [[nodiscard]] Status ended(int rank, const std::string& when) const;
    [[nodiscard]] std::vector<int> missing_ranks() const;
    [[nodiscard]] Status never_joined(Deadline deadline) const;
    [[nodiscard]] Status timed_out(const Call& call, Deadline deadline) const;
    Status fail(const Status& cause) { return memory_.fail(me_.rank, cause); }

    JobMemory memory_;
    Identity me_;
    int nranks_;
    Milliseconds timeout_;
    std::uint32_t rounds_ = 0;  // passed by this rank
    std::uint64_t calls_ = 0;
    SystemWaitOs os_;
};

}  // namespace npushmem::rendezvous
