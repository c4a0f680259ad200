// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/rendezvous_service.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/socket.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::uint64_t acceptor_key = 0;
constexpr std::uint64_t wake_key = 1;
constexpr std::uint64_t first_member_key = 2;
constexpr std::size_t spare_files = 128;  // beyond one per rank: for the program and for pending connections

// Signals belong to the program's threads: a thread inherits the mask of the thread that creates it.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

bool in_progress(const Session& session) {
    return session.stage() == Session::Stage::forming || session.stage() == Session::Stage::linking;
}

bool is_valid(const Join& join) { return join.nranks > 0 && join.nranks <= limits::ranks && join.timeout.count() > 0; }

}  // namespace

MemberConnections::Member* MemberConnections::add(Channel channel, Job* job, int rank) {
    const ConnectionId id = next_id_++;
    if (!poller_.watch(channel.fd(), id).ok()) return nullptr;
    return &members_.try_emplace(id, Member{id, std::move(channel), job, rank}).first->second;
}

MemberConnections::Member* MemberConnections::find(ConnectionId id) {
    const auto found = members_.find(id);
    return found == members_.end() ? nullptr : &found->second;
}

void MemberConnections::flush(Member& member) {
    member.channel.flush();
    poller_.modify(member.channel.fd(), member.id, EPOLLIN | (member.channel.queued() > 0 ? EPOLLOUT : 0U));
}

void MemberConnections::send_assignments(const Session& session) {
    for (const ConnectionId id : session.present()) {
        Member& member = members_.at(id);  // a member that has left has failed its session
        member.channel.queue(FrameType::assign, {session.assignment(member.rank).encode()});
        flush(member);
    }
}

void MemberConnections::send_failure(const Session& session) {
    for (const ConnectionId id : session.present())
        if (Member* const member = find(id)) send_abort(*member, session.failure());
}

void MemberConnections::send_abort(Member& member, const Status& cause) {
    if (member.abort_sent) return;
    member.channel.queue(FrameType::abort, {Failure{cause}.encode()});
    member.abort_sent = true;
    closing_.push_back({Clock::now() + limits::linger, member.id});
    flush(member);
}

void MemberConnections::expire(Moment now) {
    for (; !closing_.empty() && closing_.front().when <= now; closing_.pop_front()) erase(closing_.front().id);
}

Deadline MemberConnections::next_timeout() const {
    return closing_.empty() ? Deadline::never() : Deadline::at(closing_.front().when);
}

Result<std::unique_ptr<RendezvousService>> RendezvousService::listen(const Address& where,
                                                                     HandshakeAcceptor::Limits limits) {
    auto listener = Socket::listen(where);
    if (!listener.ok()) return listener.status().within("rendezvous service");
    auto poller = Poller::open();
    if (!poller.ok()) return poller.status();
    FileDescriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!wake.valid()) return Status{Code::system, fmt::format("cannot create an eventfd: {}", std::strerror(errno))};
    const Address address = listener.value().local_address();
    std::unique_ptr<RendezvousService> made(new RendezvousService(std::move(poller).value(), std::move(wake), address));
    if (Status open = made->open_acceptor(std::move(listener).value(), limits); !open.ok()) return open;
    return made;
}

RendezvousService::RendezvousService(Poller poller, FileDescriptor wake, const Address& address)
    : poller_(std::move(poller)),
      wake_(std::move(wake)),
      address_(address),
      owner_(::getpid()),
      members_(poller_, first_member_key) {}

RendezvousService::~RendezvousService() {
    if (!thread_.joinable()) return;
    if (!runs_in_this_process()) {
        thread_.detach();
        return;
    }
    // release: partner is the acquire load in run(). The write to the eventfd wakes the thread.
    stopping_.store(true, std::memory_order_release);
    (void)::eventfd_write(wake_.get(), 1);
    thread_.join();
}

Status RendezvousService::open_acceptor(Socket listener, HandshakeAcceptor::Limits limits) {
    auto find = [this](const Nonce& nonce) -> std::optional<Credentials> {
        const Job* job = find_job(nonce);
        return job != nullptr ? std::optional(job->credentials()) : std::nullopt;
    };
    auto acceptor = HandshakeAcceptor::make(std::move(listener), 0, find, limits);
    if (!acceptor.ok()) return acceptor.status();
    acceptor_.emplace(std::move(acceptor).value());
    if (Status watched = poller_.watch(acceptor_->fd(), acceptor_key); !watched.ok()) return watched;
    return poller_.watch(wake_.get(), wake_key);
}

Status RendezvousService::begin() {
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& refused) {
        return {Code::system, fmt::format("cannot start the rendezvous service's thread: {}", refused.what())};
    }
    return {};
}

bool RendezvousService::runs_in_this_process() const { return owner_ == ::getpid(); }

void RendezvousService::add_job(const Credentials& credentials, std::optional<JobMemory> memory) {
    {
        const std::scoped_lock lock(jobs_mutex_);
        jobs_.try_emplace(credentials.job, credentials, std::move(memory));
    }
    (void)::eventfd_write(wake_.get(), 1);  // the thread drops the memory of earlier jobs
}

void RendezvousService::rank_ended(const Nonce& job, int rank, int nranks, const std::string& how) {
    {
        const std::scoped_lock lock(jobs_mutex_);
        ended_ranks_.push_back({job, rank, nranks, how});
    }
    (void)::eventfd_write(wake_.get(), 1);
}

Job* RendezvousService::find_job(const Nonce& nonce) {
    const std::scoped_lock lock(jobs_mutex_);
    const auto found = jobs_.find(nonce);
    return found == jobs_.end() ? nullptr : &found->second;
}

void RendezvousService::run() {
    // acquire: partner is the release store in the destructor.
    while (!stopping_.load(std::memory_order_acquire)) {
        for (const Poller::Event& event : poller_.wait(next_deadline().poll_milliseconds())) on_event(event);
        expire(Clock::now());
    }
}

Deadline RendezvousService::next_deadline() {
    Deadline next = acceptor_->next_timeout().sooner(members_.next_timeout());
    const std::scoped_lock lock(jobs_mutex_);
    for (const auto& [nonce, job] : jobs_) next = next.sooner(job.next_deadline());
    return next;
}

void RendezvousService::on_event(const Poller::Event& event) {
    if (event.key == acceptor_key) return serve_acceptor();
    if (event.key == wake_key) return fail_for_ended_ranks();
    Member* const member = members_.find(event.key);
    if (member == nullptr) return;
    if (event.readable() && !receive_frames(*member)) return members_.erase(event.key);
    if (event.writable()) members_.flush(*member);
}

void RendezvousService::serve_acceptor() {
    for (AuthenticatedConnection& each : acceptor_->serve()) add_member(std::move(each));
}

// Handles the first signed frame, which must be a join.
void RendezvousService::add_member(AuthenticatedConnection admitted) {
    const auto join = admitted.first.type == FrameType::join ? Join::decode(admitted.first.payload) : std::nullopt;
    Job* const job = find_job(admitted.job);
    if (!join || job == nullptr || !is_valid(*join)) return;
    ensure_file_limit(static_cast<std::size_t>(join->nranks) + spare_files);
    Member* const member = members_.add(std::move(admitted.channel), job, join->who.rank);
    if (member == nullptr) return;
    member->channel.allow_payload(limits::abort_bytes);
    if (const Status failure = job->failure_in_memory(*join); !failure.ok())
        return members_.send_abort(*member, failure);
    job->prune(Clock::now());
    Session& session = job->session_for(*join, Clock::now());
    const bool was_in_progress = in_progress(session);
    const Status entered = session.join(*join, member->id, Clock::now());
    member->session = session.number();
    if (!entered.ok()) members_.send_abort(*member, entered);
    if (was_in_progress && session.stage() == Session::Stage::failed) members_.send_failure(session);
    if (entered.ok() && session.stage() == Session::Stage::linking) members_.send_assignments(session);
    fail_for_ended_ranks();
    job->prune(Clock::now());
    // Frames after the join are in the channel's buffer already, so no event reports them.
    if (!receive_frames(*member)) members_.erase(member->id);
}

bool RendezvousService::receive_frames(Member& member) {
    const Channel::Input input = member.channel.fill();
    for (;;) {
        auto frame = member.channel.next();
        if (!frame.ok())
            fail(member, frame.status().within(fmt::format("rank {} to the rendezvous service", member.rank)));
        if (!frame.ok()) return false;
        if (!frame.value()) break;
        if (!on_frame(member, *frame.value())) return false;
    }
    if (input != Channel::Input::end) return true;
    if (const Session* session = member.job->find(member.session); session != nullptr && !member.abort_sent)
        fail(member, session->closed(member.rank));
    return false;
}

bool RendezvousService::on_frame(Member& member, const Frame& frame) {
    if (member.abort_sent) return true;
    if (frame.type == FrameType::leave) {
        if (Session* session = member.job->find(member.session)) session->leave(member.rank);
        member.job->prune(Clock::now());
        return false;
    }
    if (const auto failure = frame.type == FrameType::abort ? Failure::decode(frame.payload) : std::nullopt) {
        fail(member, failure->cause);
        return true;
    }
    fail(member, {Code::protocol, fmt::format("rank {} sent the rendezvous service a frame of type {}", member.rank,
                                              static_cast<int>(frame.type))});
    return true;
}

void RendezvousService::fail(Member& member, const Status& cause) {
    Session* session = member.job->find(member.session);
    if (session == nullptr || !in_progress(*session) || member.abort_sent) return;
    session->fail(cause, Clock::now());
    members_.send_failure(*session);
    member.job->prune(Clock::now());
}

void RendezvousService::fail_for_ended_ranks() {
    eventfd_t times = 0;
    (void)::eventfd_read(wake_.get(), &times);
    const std::scoped_lock lock(jobs_mutex_);
    for (EndedRank& each : std::exchange(ended_ranks_, {}))
        if (const auto found = jobs_.find(each.job); found != jobs_.end())
            found->second.rank_ended(each.rank, each.nranks, std::move(each.how));
    for (auto& [nonce, job] : jobs_)
        while (const Session* session = job.fail_for_ended_rank(Clock::now())) members_.send_failure(*session);
}

void RendezvousService::expire(Moment now) {
    if (acceptor_->next_timeout().passed(now)) serve_acceptor();
    members_.expire(now);
    const std::scoped_lock lock(jobs_mutex_);
    for (auto& [nonce, job] : jobs_) {
        while (Session* late = job.find_timed_out(now)) {
            late->fail(late->overdue(), now);
            members_.send_failure(*late);
        }
        job.prune(now);
    }
}

RendezvousServices& RendezvousServices::of_process() {
    static RendezvousServices services;
    return services;
}

RendezvousService* RendezvousServices::find(const Address& where) const {
    const auto fits = [&](const std::unique_ptr<RendezvousService>& each) {
        const Address there = where.port() == 0 ? each->address().with_port(0) : each->address();
        return each->runs_in_this_process() && there == where;
    };
    const auto found = std::ranges::find_if(services_, fits);
    return found == services_.end() ? nullptr : found->get();
}

Result<UniqueId> RendezvousServices::serve(const Address& where, const MakeId& make_id,
                                           std::optional<JobMemory> memory) {
    const std::scoped_lock lock(mutex_);
    const auto make = [&](RendezvousService& service) {
        auto id = make_id(service.address());
        if (!id.ok()) return id;
        if (memory) id.value().memory = memory->handle();
        id.value().memory.bytes = 0;
        service.add_job(id.value().credentials, std::move(memory));
        return id;
    };
    if (RendezvousService* running = find(where)) return make(*running);
    auto listening = RendezvousService::listen(where);
    if (!listening.ok()) return listening.status();
    RendezvousService& service = *listening.value();
    auto id = make(service);
    if (!id.ok()) return id;
    if (Status begun = service.begin(); !begun.ok()) return begun;
    services_.push_back(std::move(listening).value());
    return id;
}

Status RendezvousServices::rank_ended(const UniqueId& id, int rank, int nranks, const std::string& how) {
    const std::scoped_lock lock(mutex_);
    RendezvousService* const service = find(id.service);
    if (service == nullptr)
        return {Code::state, fmt::format("no rendezvous service of this process listens at {}", id.service.text())};
    service->rank_ended(id.credentials.job, rank, nranks, how);
    return {};
}

}  // namespace npushmem::rendezvous
