// SPDX-License-Identifier: BSD-3-Clause
// A small bootstrap for the processes of one host, with defects to choose: rank 0 listens on a Unix socket whose name
// is the job's id, all other ranks connect to it, and every call is one message to rank 0 and one back. Without a
// defect it meets the bootstrap contract; each defect is one that the contract must find.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::contract {

enum class StarDefect {
    none,
    ranks_in_wrong_order,   // allgather rotates the contributions
    wrong_number_of_ranks,  // nranks() is one too many
    barrier_returns_early,  // without waiting for anybody
    abort_without_reason,   // reports the abort and drops its reason
    abort_not_reported,     // the aborting rank only leaves
    long_reason_rejected,   // receivers take a long message for a broken one
    usable_after_abort,     // calls after the own abort succeed
    check_waits,            // check waits for the next message
    check_sees_nothing,     // check always succeeds
    descriptors_leak,       // close keeps the sockets open
    sizes_unchecked,        // writes what arrives, however long it is
    sizes_truncated,        // writes what fits, and reports no failure
    large_parts_truncated,  // only the first 64 KiB of a contribution arrive
    in_place_unsupported,   // clears the receive buffer before it reads the contribution
    empty_gather_skipped,   // one rank leaves out empty allgathers
    dead_rank_unnoticed,    // rank 0 waits without end for a rank whose connection has closed
    open_without_limit,     // open ignores its time-out
    late_ranks_rejected,    // open waits only for a moment
    ids_repeat,             // get_uniqueid returns the same id again
    ids_unchecked,          // any bytes are an id
    ids_ignored,            // all jobs of this host use one socket, as long as one of them lives
    numbers_unchecked,      // a rank outside the job is accepted
    crashes_in_allgather,   // a null pointer in the last rank
};

class StarBootstrap final : public Bootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(StarDefect defect, const npushmem_host& host,
                                                   const npushmem_bootstrap_params& params);
    static Status get_uniqueid(StarDefect defect, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);
    ~StarBootstrap() override;

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override;
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    Status barrier() override;
    void abort(const std::string& reason) override;
    Status check() override;

private:
    using Bytes = std::vector<std::byte>;
    using Moment = std::chrono::steady_clock::time_point;
    enum class Type : std::uint32_t { hello = 1, go, barrier, gather, result, failure };
    struct Header {
        Type type;
        std::int32_t number;  // of hello: the rank; of a failure: the code
        std::uint64_t bytes;
    };
    struct Message {
        Header header;
        Bytes payload;
    };

    StarBootstrap(StarDefect defect, int rank, int nranks);
    [[nodiscard]] bool is(StarDefect defect) const { return defect_ == defect; }
    Status join(const std::string& name, Moment until);
    Status accept_ranks(int listener, Moment until);
    Status accept_rank(int connection, Moment until);
    Status connect_to_rank_0(const std::string& name, Moment until);
    Status exchange(Type call, std::span<const std::byte> send, std::span<std::byte> receive);
    Status gather_at_rank_0(Type call, std::span<const std::byte> send, Bytes& all);
    Status ask_rank_0(Type call, std::span<const std::byte> send, Bytes& all);
    Status deliver(const Bytes& all, std::span<std::byte> receive);
    Status send(int link, const Header& header, std::span<const std::byte> payload, Moment until);
    Result<Message> receive(int rank, Moment until);
    Status read_exactly(int rank, std::span<std::byte> into, Moment until);
    // Waits for input from one of these ranks; returns its number.
    Result<int> await_input(const std::vector<int>& ranks, int listener, Moment until);
    Status failure_in(const Message& message) const;
    Status fail(Status cause);
    void broadcast_failure();
    [[nodiscard]] Moment deadline_of_call() const { return std::chrono::steady_clock::now() + call_timeout_; }

    StarDefect defect_;
    int rank_;
    int nranks_;
    std::chrono::seconds call_timeout_{};
    std::vector<int> links_;  // by rank; a rank other than 0 has one to rank 0 only
    Status failure_;
};

}  // namespace npushmem::contract
