// One start of a job: who has joined, who still has to, and why it failed if it did. No sockets, no clock: the service
// asks, this class knows. Memory: one slot per rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bootstrap/rendezvous/messages.hpp"

namespace npushmem::rendezvous {

class Session {
public:
    using ConnectionId = std::uint64_t;  // the service's name for a connection
    // forming: ranks join. linking: all have joined and connect to their neighbours. finished: all have left.
    // failed: kept so that ranks that come late learn the cause instead of waiting for ranks that are gone.
    enum class Stage { forming, linking, finished, failed };

    // Shaped by the first rank that joins.
    Session(std::uint32_t number, const Join& first, Moment now);

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] int size() const { return static_cast<int>(slots_.size()); }
    [[nodiscard]] Stage stage() const { return stage_; }
    [[nodiscard]] const Status& failure() const { return failure_; }
    [[nodiscard]] Moment deadline() const { return deadline_; }

    // Is this the session that the rank means? Not if it has been through it already.
    [[nodiscard]] bool matches(const Join& join) const;
    // Enters the rank. A failure is what that rank must be told; when it is the failure of all ranks, stage() is
    // `failed` afterwards.
    Status join(const Join& join, ConnectionId member, Moment now);
    // The rank has all its links.
    void leave(int rank);
    // The first failure counts.
    void fail(Status cause, Moment now);
    // Does it wait for this rank to join?
    [[nodiscard]] bool is_missing(int rank) const;
    // The rank's connection ended, or its time ran out; what to tell everybody.
    [[nodiscard]] Status closed(int rank) const;
    [[nodiscard]] Status overdue() const;
    // The process of a missing rank has ended, as `how` says.
    [[nodiscard]] static Status ended_without_joining(const std::string& how);

    // Of a session that is linking.
    [[nodiscard]] Assign assignment(int rank) const;
    // The connections of the ranks that have joined and not left.
    [[nodiscard]] std::vector<ConnectionId> present() const;
    // A failed session that every rank has heard of, or that is so old that who comes now comes for another start.
    [[nodiscard]] bool is_expired(Moment now) const;

private:
    struct Slot {
        enum class State { absent, joined, left };
        State state = State::absent;
        Identity who;
        Address listener;
        ConnectionId member = 0;
    };

    [[nodiscard]] bool in_range(int rank) const { return rank >= 0 && rank < size(); }
    [[nodiscard]] const Slot& slot(int rank) const { return slots_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] Slot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] std::vector<int> ranks_in(Slot::State state) const;
    [[nodiscard]] Status check_join(const Join& join) const;
    void record_join(const Join& join, ConnectionId member);

    std::uint32_t number_;
    Stage stage_ = Stage::forming;
    Identity first_;
    Version version_;
    std::vector<Slot> slots_;
    int joined_ = 0;
    int left_ = 0;
    Milliseconds timeout_;
    Moment deadline_;
    Status failure_;
};

}  // namespace npushmem::rendezvous
