// SPDX-License-Identifier: BSD-3-Clause
// Jobs of a rendezvous service, and their sessions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/authentication.hpp"
#include "bootstrap/rendezvous/job_memory.hpp"
#include "bootstrap/rendezvous/messages.hpp"

namespace npushmem::rendezvous {

using ConnectionId = std::uint64_t;  // the service's name for a connection

// The ranks of a session: which have joined and which have left again. Memory: one slot per rank.
class Membership {
public:
    enum class State { absent, joined, left };
    struct Member {
        State state = State::absent;
        Identity who;
        Address listener;
        npushmem_host_id host{};
        SegmentHandle memory;
        ConnectionId connection = 0;
    };

    explicit Membership(int size) : members_(static_cast<std::size_t>(size)) {}

    [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
    [[nodiscard]] bool contains(int rank) const { return rank >= 0 && rank < size(); }
    [[nodiscard]] const Member& of(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] bool is_absent(int rank) const { return contains(rank) && of(rank).state == State::absent; }
    [[nodiscard]] bool all_joined() const { return joined_ == size(); }
    // Do all ranks run on the host of rank 0, which offers them memory? For a session that all have joined.
    [[nodiscard]] bool all_share_memory() const;
    [[nodiscard]] bool all_left() const { return left_ == size(); }
    [[nodiscard]] std::vector<int> ranks_in(State state) const;
    // Returns the connections of the ranks that have joined and not left.
    [[nodiscard]] std::vector<ConnectionId> connections() const;

    // For an absent rank.
    void join(const Join& join, ConnectionId connection);
    // Does nothing unless the rank has joined and not left.
    void leave(int rank);

private:
    std::vector<Member> members_;
    int joined_ = 0;  // including those that have left
    int left_ = 0;
};

// One start of a job: the ranks that have joined, the ranks that are missing, and the failure if there is one. It has
// no sockets and no clock.
class Session {
public:
    // forming: ranks join. linking: all have joined; they connect to their neighbours, or attach to the memory of rank
    // 0. finished: all have left.
    // failed: kept so that late ranks receive the cause instead of waiting for ranks that have ended.
    enum class Stage { forming, linking, finished, failed };

    // The first rank that joins defines the session.
    Session(std::uint32_t number, const Join& first, Moment now);

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] int size() const { return members_.size(); }
    [[nodiscard]] Stage stage() const { return stage_; }
    [[nodiscard]] const Status& failure() const { return failure_; }
    [[nodiscard]] Moment deadline() const { return deadline_; }

    // Does the rank mean this session? Not if the rank has left it already.
    [[nodiscard]] bool matches(const Join& join) const;
    // Records the rank. An error must be sent to that rank; if all ranks fail, stage() is `failed` afterwards.
    Status join(const Join& join, ConnectionId member, Moment now);
    // The rank has connected to all others.
    void leave(int rank);
    // The first failure is kept.
    void fail(Status cause, Moment now);
    // Does it wait for this rank to join?
    [[nodiscard]] bool is_missing(int rank) const { return stage_ == Stage::forming && members_.is_absent(rank); }
    // The failure for all ranks when the rank's connection closed, or when the session timed out.
    [[nodiscard]] Status closed(int rank) const;
    [[nodiscard]] Status overdue() const;

    // Needs a session that is linking.
    [[nodiscard]] Assign assignment(int rank) const;
    // Returns the connections of the ranks that have joined and not left.
    [[nodiscard]] std::vector<ConnectionId> present() const { return members_.connections(); }
    // Has every rank received the failure, or is the session so old that a rank that joins now means another start?
    [[nodiscard]] bool is_expired(Moment now) const;

private:
    [[nodiscard]] Status check_join(const Join& join) const;

    std::uint32_t number_;
    Stage stage_ = Stage::forming;
    Identity first_;
    Version version_;
    Membership members_;
    bool shares_memory_ = false;  // since all have joined
    Milliseconds timeout_;
    Moment deadline_;
    Status failure_;
};

// The sessions of one unique id; few at a time, since a session begins when ranks return from the previous one.
class Job {
public:
    // `memory`: of the unique id; none: all ranks join the service.
    explicit Job(Credentials credentials, std::optional<JobMemory> memory = {})
        : credentials_(credentials), memory_(std::move(memory)) {}

    [[nodiscard]] const Credentials& credentials() const { return credentials_; }
    // Returns the session that the rank means, or a new one. The reference is valid until prune(). Ranks that wait in
    // the memory join the service too.
    Session& session_for(const Join& join, Moment now);
    // Returns the failure of a start in the memory for a rank that took no part in it, once; otherwise OK.
    Status failure_in_memory(const Join& join);
    // nullptr if the session has ended.
    Session* find(std::uint32_t number);
    // Returns a session that has timed out, or nullptr.
    Session* find_timed_out(Moment now);
    [[nodiscard]] Deadline next_deadline() const;
    // The process of a rank has ended and cannot join any more; `how` describes the end. Sessions of `nranks` ranks
    // that wait for it fail, also those that begin later, and ranks that wait for it in the memory.
    void rank_ended(int rank, int nranks, std::string how);
    // Fails a session that waits for a rank that has ended, and returns it; nullptr if there is none.
    Session* fail_for_ended_rank(Moment now);
    // Drops sessions that have ended; failed sessions later, see Session::is_expired(). Drops memory that serves no
    // rank any more.
    void prune(Moment now);

private:
    struct EndedRank {
        int rank;
        int nranks;
        std::string how;
    };

    Credentials credentials_;
    std::optional<JobMemory> memory_;
    std::vector<EndedRank> ended_;
    std::uint32_t next_number_ = 1;  // 0 is the session of connections to the service itself
    std::deque<Session> sessions_;
};

}  // namespace npushmem::rendezvous
