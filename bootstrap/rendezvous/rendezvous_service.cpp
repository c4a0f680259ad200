#include "bootstrap/rendezvous/rendezvous_service.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "bootstrap/rendezvous/file_limit.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::uint64_t door_key = 0;
constexpr std::uint64_t wake_key = 1;
constexpr std::uint64_t first_member_key = 2;
constexpr std::size_t spare_files = 128;  // beyond one per rank: the program's own, and strangers

// Signals belong to the program's threads: a thread inherits the mask that its maker has at the time.
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

bool under_way(const Session& session) {
    return session.stage() == Session::Stage::forming || session.stage() == Session::Stage::linking;
}

bool sensible(const Join& join) { return join.nranks > 0 && join.nranks <= limits::ranks && join.patience.count() > 0; }

}  // namespace

Result<std::unique_ptr<RendezvousService>> RendezvousService::listen(const Address& where, Doorman::Limits limits) {
    auto listener = Socket::listen(where);
    if (!listener.ok()) return listener.status().within("rendezvous service");
    auto poller = Poller::make();
    if (!poller.ok()) return poller.status();
    FileDescriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!wake.valid()) return Status{Code::system, fmt::format("cannot make an eventfd: {}", std::strerror(errno))};
    const Address address = listener.value().local_address();
    std::unique_ptr<RendezvousService> made(new RendezvousService(std::move(poller).value(), std::move(wake), address));
    if (Status open = made->open_door(std::move(listener).value(), limits); !open.ok()) return open;
    return made;
}

RendezvousService::RendezvousService(Poller poller, FileDescriptor wake, const Address& address)
    : poller_(std::move(poller)),
      wake_(std::move(wake)),
      address_(address),
      owner_(::getpid()),
      next_id_(first_member_key) {}

RendezvousService::~RendezvousService() {
    if (!thread_.joinable()) return;
    if (!runs_in_this_process()) {
        thread_.detach();
        return;
    }
    // release: partner is the acquire load in run(). The write to the eventfd makes the thread look.
    stopping_.store(true, std::memory_order_release);
    (void)::eventfd_write(wake_.get(), 1);
    thread_.join();
}

Status RendezvousService::open_door(Socket listener, Doorman::Limits limits) {
    auto find = [this](const Nonce& nonce) -> std::optional<Credentials> {
        const Job* job = find_job(nonce);
        return job != nullptr ? std::optional(job->credentials()) : std::nullopt;
    };
    auto door = Doorman::make(std::move(listener), 0, find, limits);
    if (!door.ok()) return door.status();
    doorman_.emplace(std::move(door).value());
    if (Status watched = poller_.watch(doorman_->fd(), door_key); !watched.ok()) return watched;
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

void RendezvousService::add_job(const Credentials& credentials) {
    const std::scoped_lock lock(jobs_mutex_);
    jobs_.try_emplace(credentials.job, credentials);
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
        for (const Poller::Event& event : poller_.wait(next_deadline())) on_event(event);
        expire(Clock::now());
    }
}

Deadline RendezvousService::next_deadline() {
    Deadline next = doorman_->next_duty();
    if (!leaving_.empty()) next = next.sooner(Deadline::at(leaving_.front().when));
    const std::scoped_lock lock(jobs_mutex_);
    for (const auto& [nonce, job] : jobs_) next = next.sooner(job.next_deadline());
    return next;
}

void RendezvousService::on_event(const Poller::Event& event) {
    if (event.key == door_key) return serve_door();
    if (event.key == wake_key) return fail_for_ended_ranks();
    const auto found = members_.find(event.key);
    if (found == members_.end()) return;
    if (event.readable && !hear(found->second)) {
        members_.erase(found);
        return;
    }
    if (event.writable) push(event.key, found->second);
}

void RendezvousService::serve_door() {
    for (Admitted& each : doorman_->serve()) introduce(std::move(each));
}

// The first signed frame: it must be a join, for what else could a newcomer want.
void RendezvousService::introduce(Admitted admitted) {
    const auto join = admitted.first.type == FrameType::join ? Join::decode(admitted.first.payload) : std::nullopt;
    Job* const job = find_job(admitted.job);
    if (!join || job == nullptr || !sensible(*join)) return;
    ensure_file_limit(static_cast<std::size_t>(join->nranks) + spare_files);
    const Id id = next_id_++;
    if (!poller_.watch(admitted.channel.fd(), id).ok()) return;
    job->tidy(Clock::now());
    Session& session = job->session_for(*join, Clock::now());
    const bool was_under_way = under_way(session);
    const Status entered = session.join(*join, id, Clock::now());
    admitted.channel.allow_payload(limits::abort_bytes);
    Member& member =
        members_.try_emplace(id, Member{std::move(admitted.channel), job, session.number(), join->who.rank})
            .first->second;
    if (!entered.ok()) say_last(id, member, entered);
    if (was_under_way && session.stage() == Session::Stage::failed) announce(session);
    if (entered.ok() && session.stage() == Session::Stage::linking) assign_all(session);
    fail_for_ended_ranks();
    job->tidy(Clock::now());
    // What followed the join is in the channel's buffer already, so no event will tell of it.
    if (!hear(member)) members_.erase(id);
}

bool RendezvousService::hear(Member& member) {
    const Channel::Input input = member.channel.fill();
    for (;;) {
        auto frame = member.channel.next();
        if (!frame.ok())
            fail(member, frame.status().within(fmt::format("rank {} to the rendezvous service", member.rank)));
        if (!frame.ok()) return false;
        if (!frame.value()) break;
        if (!on_frame(member, *frame.value())) return false;
    }
    if (input == Channel::Input::end) on_closed(member);
    return input != Channel::Input::end;
}

bool RendezvousService::on_frame(Member& member, const Frame& frame) {
    if (member.last_words) return true;
    if (frame.type == FrameType::leave) {
        if (Session* session = member.job->find(member.session)) session->leave(member.rank);
        member.job->tidy(Clock::now());
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

void RendezvousService::on_closed(Member& member) {
    const Session* session = member.job->find(member.session);
    if (session != nullptr && !member.last_words) fail(member, session->closed(member.rank));
}

void RendezvousService::fail(Member& member, const Status& cause) {
    Session* session = member.job->find(member.session);
    if (session == nullptr || !under_way(*session) || member.last_words) return;
    session->fail(cause, Clock::now());
    announce(*session);
    member.job->tidy(Clock::now());
}

void RendezvousService::fail_for_ended_ranks() {
    eventfd_t times = 0;
    (void)::eventfd_read(wake_.get(), &times);
    const std::scoped_lock lock(jobs_mutex_);
    for (EndedRank& each : std::exchange(ended_ranks_, {}))
        if (const auto found = jobs_.find(each.job); found != jobs_.end())
            found->second.rank_ended(each.rank, each.nranks, std::move(each.how));
    for (auto& [nonce, job] : jobs_)
        while (const Session* session = job.fail_for_ended_rank(Clock::now())) announce(*session);
}

void RendezvousService::push(Id id, Member& member) {
    member.channel.flush();
    poller_.rewatch(member.channel.fd(), id, true, member.channel.queued() > 0);
}

void RendezvousService::assign_all(const Session& session) {
    for (const Id id : session.present()) {
        Member& member = members_.at(id);  // a member that is gone has failed its session
        member.channel.queue(FrameType::assign, {session.assignment(member.rank).encode()});
        push(id, member);
    }
}

void RendezvousService::announce(const Session& session) {
    for (const Id id : session.present()) {
        const auto found = members_.find(id);
        if (found != members_.end()) say_last(id, found->second, session.failure());
    }
}

void RendezvousService::say_last(Id id, Member& member, const Status& cause) {
    if (member.last_words) return;
    member.channel.queue(FrameType::abort, {Failure{cause}.encode()});
    member.last_words = true;
    leaving_.push_back({Clock::now() + limits::linger, id});
    push(id, member);
}

void RendezvousService::expire(Moment now) {
    if (doorman_->next_duty().passed(now)) serve_door();
    for (; !leaving_.empty() && leaving_.front().when <= now; leaving_.pop_front()) members_.erase(leaving_.front().id);
    const std::scoped_lock lock(jobs_mutex_);
    for (auto& [nonce, job] : jobs_) {
        while (Session* late = job.overdue(now)) {
            late->fail(late->overdue(), now);
            announce(*late);
        }
        job.tidy(now);
    }
}

}  // namespace npushmem::rendezvous
