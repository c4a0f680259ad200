// The place where the ranks of a job find each other: a thread that listens, admits holders of a job's secret, collects
// the ranks of a session, tells each where its parent in the tree listens, and passes failures on until all links
// stand. It serves any number of jobs and any number of sessions of each.
//
// Threads: add_job() and rank_ended() from any; everything else happens in the service's own thread, which blocks all
// signals. The destructor ends the thread; ranks that are still joining then see their connections close.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/rendezvous/file_descriptor.hpp"
#include "bootstrap/rendezvous/handshake_acceptor.hpp"
#include "bootstrap/rendezvous/job.hpp"

namespace npushmem::rendezvous {

class RendezvousService {
public:
    // Listens; port 0: the kernel chooses, address() tells. Who connects waits until begin().
    static Result<std::unique_ptr<RendezvousService>> listen(const Address& where,
                                                             HandshakeAcceptor::Limits limits = {});
    // Starts to serve. A job that was added before is known to whoever connects first.
    Status begin();
    ~RendezvousService();
    RendezvousService(const RendezvousService&) = delete;
    RendezvousService& operator=(const RendezvousService&) = delete;

    [[nodiscard]] const Address& address() const { return address_; }
    // After a fork the child has this object but not its thread.
    [[nodiscard]] bool runs_in_this_process() const;
    // A job that is served already stays as it is.
    void add_job(const Credentials& credentials);
    // See Job::rank_ended.
    void rank_ended(const Nonce& job, int rank, int nranks, const std::string& how);

private:
    struct Member {
        Channel channel;
        Job* job;
        std::uint32_t session;
        int rank;
        bool abort_sent = false;  // an abort is on its way to it; nothing else matters any more
    };
    using Id = std::uint64_t;
    struct EndedRank {
        Nonce job;
        int rank;
        int nranks;
        std::string how;
    };
    struct ClosingMember {
        Moment when;
        Id id;
    };

    RendezvousService(Poller poller, FileDescriptor wake, const Address& address);

    Status open_acceptor(Socket listener, HandshakeAcceptor::Limits limits);

    void run();
    [[nodiscard]] Deadline next_deadline();
    void on_event(const Poller::Event& event);
    void serve_acceptor();
    void add_member(AuthenticatedConnection admitted);
    // False when the member is to be dropped.
    bool receive_frames(Member& member);
    bool on_frame(Member& member, const Frame& frame);
    void on_closed(Member& member);
    void fail(Member& member, const Status& cause);
    void flush_member(Id id, Member& member);
    void assign_all(const Session& session);
    void send_failure(const Session& session);
    void send_abort(Id id, Member& member, const Status& cause);
    void expire(Moment now);
    void fail_for_ended_ranks();
    Job* find_job(const Nonce& nonce);

    std::optional<HandshakeAcceptor> acceptor_;  // set before the thread starts
    Poller poller_;
    FileDescriptor wake_;
    Address address_;
    pid_t owner_;
    // Guards the map and what has not been taken up yet; the jobs in the map belong to the service's thread.
    std::mutex jobs_mutex_;
    std::vector<EndedRank> ended_ranks_;
    std::map<Nonce, Job> jobs_;
    std::map<Id, Member> members_;
    std::deque<ClosingMember> closing_;  // members that were sent an abort, in order of time
    Id next_id_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all the others
};

}  // namespace npushmem::rendezvous
