// SPDX-License-Identifier: BSD-3-Clause
// The rendezvous service, and all services of this process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/rendezvous/handshake_acceptor.hpp"
#include "bootstrap/rendezvous/session.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"
#include "core/base/poller.hpp"
#include "core/base/socket.hpp"

namespace npushmem::rendezvous {

// The connections of the ranks that are joining: the frames queued for each, and its deadline after an abort.
class MemberConnections {
public:
    struct Member {
        ConnectionId id;
        Channel channel;
        Job* job;
        int rank;
        std::uint32_t session = 0;
        bool abort_sent = false;  // an abort was sent to it; later frames are ignored
    };

    // Watches the connections under keys from `first_id` on.
    MemberConnections(Poller& poller, ConnectionId first_id) : poller_(poller), next_id_(first_id) {}

    // nullptr if the connection cannot be watched. The pointer is valid until erase() or expire().
    Member* add(Channel channel, Job* job, int rank);
    // nullptr if there is none.
    Member* find(ConnectionId id);
    void erase(ConnectionId id) { members_.erase(id); }

    // Sends the queued frames, and waits for room for the rest.
    void flush(Member& member);
    // Sends every rank of a session that is linking its assignment.
    void send_assignments(const Session& session);
    // Sends every rank of a session its failure.
    void send_failure(const Session& session);
    // Sends one abort only, and closes the connection a moment later.
    void send_abort(Member& member, const Status& cause);

    // Closes the connections whose moment after an abort has passed.
    void expire(Moment now);
    [[nodiscard]] Deadline next_timeout() const;

private:
    struct ClosingMember {
        Moment when;
        ConnectionId id;
    };

    Poller& poller_;
    ConnectionId next_id_;
    std::map<ConnectionId, Member> members_;
    std::deque<ClosingMember> closing_;  // members that were sent an abort, in order of time
};

// The service through which the ranks of a job find each other. Its thread listens, accepts holders of a job's secret,
// collects the ranks of a session, sends each the address of its parent in the tree, and forwards failures until all
// links are connected. It serves any number of jobs and of sessions of each job.
//
// Threads: add_job() and rank_ended() from any; everything else runs in the service's own thread, which blocks all
// signals. The destructor ends the thread; ranks that are still joining then see their connections close.
class RendezvousService {
public:
    // Listens; port 0: the kernel chooses, address() returns it. Connections wait until begin().
    static Result<std::unique_ptr<RendezvousService>> listen(const Address& where,
                                                             HandshakeAcceptor::Limits limits = {});
    // Starts to serve. Jobs that were added before are known to the first connection.
    Status begin();
    ~RendezvousService();

    [[nodiscard]] const Address& address() const { return address_; }
    // After a fork the child has this object but not its thread.
    [[nodiscard]] bool runs_in_this_process() const;
    // A job that is served already does not change. `memory`: of its unique id.
    void add_job(const Credentials& credentials, std::optional<JobMemory> memory = {});
    // See Job::rank_ended.
    void rank_ended(const Nonce& job, int rank, int nranks, const std::string& how);

private:
    using Member = MemberConnections::Member;
    struct EndedRank {
        Nonce job;
        int rank;
        int nranks;
        std::string how;
    };
    RendezvousService(Poller poller, FileDescriptor wake, const Address& address);

    Status open_acceptor(Socket listener, HandshakeAcceptor::Limits limits);

    void run();
    [[nodiscard]] Deadline next_deadline();
    void on_event(const Poller::Event& event);
    void serve_acceptor();
    void add_member(AuthenticatedConnection admitted);
    // False: drop the member.
    bool receive_frames(Member& member);
    bool on_frame(Member& member, const Frame& frame);
    void fail(Member& member, const Status& cause);
    void expire(Moment now);
    void fail_for_ended_ranks();
    Job* find_job(const Nonce& nonce);

    std::optional<HandshakeAcceptor> acceptor_;  // set before the thread starts
    Poller poller_;
    FileDescriptor wake_;
    Address address_;
    pid_t owner_;
    // Guards the map and the requests to the service's thread; that thread owns the jobs in the map.
    std::mutex jobs_mutex_;
    std::vector<EndedRank> ended_ranks_;
    std::map<Nonce, Job> jobs_;
    MemberConnections members_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all the others
};

// The rendezvous services of this process.
//
// get_uniqueid has no instance that could own a service, and the service must outlive both the call and every instance,
// because an id serves several starts. So the process owns it: of_process() holds the plugin's only mutable object of
// static lifetime. Any thread.
class RendezvousServices {
public:
    static RendezvousServices& of_process();

    // Creates an id whose service listens at `where` (port 0: any port), and serves it in an existing or a new service.
    // `memory`: for ranks that all run on this host.
    using MakeId = std::function<Result<UniqueId>(const Address& service)>;
    Result<UniqueId> serve(const Address& where, const MakeId& make_id, std::optional<JobMemory> memory = {});
    // See Job::rank_ended. Code::state if no service of this process serves the id.
    Status rank_ended(const UniqueId& id, int rank, int nranks, const std::string& how);

private:
    RendezvousService* find(const Address& where) const;

    std::mutex mutex_;
    std::vector<std::unique_ptr<RendezvousService>> services_;
};

}  // namespace npushmem::rendezvous
