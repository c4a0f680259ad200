// The sessions of one unique id: at most a few at a time, since a session begins when ranks return from the one before.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/credentials.hpp"
#include "bootstrap/rendezvous/session.hpp"

namespace npushmem::rendezvous {

class Job {
public:
    explicit Job(Credentials credentials) : credentials_(credentials) {}

    [[nodiscard]] const Credentials& credentials() const { return credentials_; }
    // The session that the rank means, made if there is none. The reference holds until prune().
    Session& session_for(const Join& join, Moment now);
    // nullptr when it is over.
    Session* find(std::uint32_t number);
    // A session whose time has run out, or nullptr.
    Session* find_timed_out(Moment now);
    [[nodiscard]] Deadline next_deadline() const;
    // The process of a rank has ended, as `how` says, so that it joins no more: sessions of `nranks` ranks that wait
    // for it fail, also those that begin later.
    void rank_ended(int rank, int nranks, std::string how);
    // Fails a session that waits for a rank that has ended, and returns it; nullptr when there is none.
    Session* fail_for_ended_rank(Moment now);
    // Drops sessions that are over; failed ones a while later, see Session::is_expired().
    void prune(Moment now);

private:
    struct EndedRank {
        int rank;
        int nranks;
        std::string how;
    };

    Credentials credentials_;
    std::vector<EndedRank> ended_;
    std::uint32_t next_number_ = 1;  // 0 is the session of connections to the service itself
    std::deque<Session> sessions_;
};

}  // namespace npushmem::rendezvous
