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

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "core/base/parking.hpp"
#include "core/base/shared_segment.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

class SharedMemoryBootstrap final : public Bootstrap {
public:
    // Creates the memory for `nranks` ranks, for one of them; the others attach to its handle.
    static Result<SharedSegment> create_memory(int nranks);

    // For each rank. `timeout` limits each collective; 0: none. Code::protocol if the memory has another layout.
    static Result<std::unique_ptr<SharedMemoryBootstrap>> open(SharedSegment memory, const Identity& me, int nranks,
                                                               Milliseconds timeout);
    // Leaves the job, without waiting.
    ~SharedMemoryBootstrap() override;

    // The barrier of the job's start: afterwards all ranks have attached. Another service reports ranks that never do:
    // `service_failure` is called now and then, and its failure ends the wait.
    Status opening_barrier(Deadline deadline, const std::function<Status()>& service_failure);

    [[nodiscard]] int rank() const override { return me_.rank; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    Status barrier() override;
    void abort(const std::string& reason) override;
    Status check() override;

private:
    using Call = CollectiveCall;
    struct RankState;
    struct Header;

    SharedMemoryBootstrap(SharedSegment memory, const Identity& me, int nranks, Milliseconds timeout);

    [[nodiscard]] static std::uint64_t memory_bytes(int nranks);
    [[nodiscard]] static std::size_t piece_bytes(int nranks);
    [[nodiscard]] static std::size_t buffers_offset(int nranks);
    [[nodiscard]] Header& header() const;
    [[nodiscard]] RankState& state_of(int rank) const;
    // The buffer of the round in which this rank is, or which it enters next.
    [[nodiscard]] std::span<std::byte> buffer() const;

    [[nodiscard]] Deadline deadline() const;
    Status pass_round(const Call& call, Deadline deadline, const std::function<Status()>& service_failure = {});
    Status await_others(const Call& call, Deadline deadline, const std::function<Status()>& service_failure);
    Status compare_calls();
    // Returns a rank that has not entered the current round and has left; -1: none.
    [[nodiscard]] int find_left() const;
    // Returns a rank that has not left and whose process has ended; -1: none. Any thread. Reads the states of `count`
    // processes from `first` on; of the others it finds only those that the kernel has forgotten.
    [[nodiscard]] int find_ended(int first, int count) const;
    [[nodiscard]] bool has_entered(int rank) const;
    // "rank 3 (pid 123 on host x)"; "rank 3" if it has not attached.
    [[nodiscard]] std::string name_of(int rank) const;
    [[nodiscard]] Status ended(int rank, const std::string& when) const;
    [[nodiscard]] Status timed_out(const Call& call, Deadline deadline) const;
    // Makes `cause` the job's failure, unless there is one already. Returns the job's failure.
    Status fail(const Status& cause);
    // The job's failure; OK if there is none.
    [[nodiscard]] Status failure() const;
    // Wakes the ranks that sleep, to check again.
    void announce_change() const;

    SharedSegment memory_;
    Identity me_;
    int nranks_;
    Milliseconds timeout_;
    std::uint32_t rounds_ = 0;  // passed by this rank
    std::uint64_t calls_ = 0;
    SystemWaitOs os_;
};

}  // namespace npushmem::rendezvous
