// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "core/base/parse.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::rendezvous {

std::vector<int> Membership::ranks_in(State state) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank)
        if (of(rank).state == state) ranks.push_back(rank);
    return ranks;
}

std::vector<ConnectionId> Membership::connections() const {
    std::vector<ConnectionId> connections;
    for (const Member& each : members_)
        if (each.state == State::joined) connections.push_back(each.connection);
    return connections;
}

bool Membership::all_share_memory() const {
    const npushmem_host_id& host = of(0).host;
    return of(0).memory.given() && std::ranges::all_of(members_, [&](const Member& each) {
               return is_same_host(each.host, host) && each.host.user == host.user;
           });
}

void Membership::join(const Join& join, ConnectionId connection) {
    members_[static_cast<std::size_t>(join.who.rank)] = {State::joined, join.who,    join.listener,
                                                         join.host,     join.memory, connection};
    ++joined_;
}

void Membership::leave(int rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    if (member.state != State::joined) return;
    member.state = State::left;
    ++left_;
}

Session::Session(std::uint32_t number, const Join& first, Moment now)
    : number_(number),
      first_(first.who),
      version_(first.version),
      members_(first.nranks),
      timeout_(first.timeout),
      deadline_(now + first.timeout) {}

bool Session::matches(const Join& join) const {
    if (stage_ == Stage::forming) return true;
    if (stage_ == Stage::finished || !members_.contains(join.who.rank)) return false;
    const Membership::Member& mine = members_.of(join.who.rank);
    if (stage_ == Stage::failed) return mine.state == Membership::State::absent;
    // A process that returns while others still link means the next session; its `leave` may be in flight.
    return mine.state == Membership::State::joined && !mine.who.same_process(join.who);
}

Status Session::check_join(const Join& join) const {
    const auto& who = join.who;
    if (join.nranks != size())
        return {Code::mismatch, fmt::format("{} says that the job has {} ranks, {} says {}", who.text(), join.nranks,
                                            first_.text(), size())};
    if (!members_.contains(who.rank))
        return {Code::range, fmt::format("{} is outside the job's ranks 0 to {}", who.text(), size() - 1)};
    if (!members_.is_absent(who.rank))
        return {Code::state,
                fmt::format("rank {} joined twice: pid {} on host {}, and pid {} on host {}", who.rank,
                            members_.of(who.rank).who.pid, members_.of(who.rank).who.host, who.pid, who.host)};
    if (join.version != version_)
        return {Code::mismatch, fmt::format("{} runs npushmem {}, {} runs {}; start all ranks with the same library",
                                            who.text(), text_of(join.version), first_.text(), text_of(version_))};
    return {};
}

Status Session::join(const Join& join, ConnectionId member, Moment now) {
    if (stage_ == Stage::failed) {
        members_.join(join, member);
        return failure_;
    }
    if (Status no = check_join(join); !no.ok()) {
        // An error after the session was complete is an intruder's, not the job's.
        if (stage_ == Stage::forming) fail(no, now);
        if (members_.is_absent(join.who.rank)) members_.join(join, member);
        return no;
    }
    members_.join(join, member);
    timeout_ = std::min(timeout_, join.timeout);
    deadline_ = std::min(deadline_, now + join.timeout);
    if (members_.all_joined()) {
        stage_ = Stage::linking;
        shares_memory_ = members_.all_share_memory();
        deadline_ = now + timeout_;
    }
    return {};
}

void Session::leave(int rank) {
    members_.leave(rank);
    if (members_.all_left() && stage_ == Stage::linking) stage_ = Stage::finished;
}

void Session::fail(Status cause, Moment now) {
    if (stage_ == Stage::failed) return;
    stage_ = Stage::failed;
    failure_ = std::move(cause);
    deadline_ = now + timeout_;
}

bool Session::is_expired(Moment now) const {
    return stage_ == Stage::failed && (members_.all_joined() || deadline_ <= now);
}

Status Session::closed(int rank) const {
    return {Code::peer_dead, fmt::format("{} closed its connection while the job was starting (it ended or was killed)",
                                         members_.of(rank).who.text())};
}

Status Session::overdue() const {
    const bool forming = stage_ == Stage::forming;
    const auto late = rank_list(members_.ranks_in(forming ? Membership::State::absent : Membership::State::joined));
    const auto* what = forming ? "never joined" : "did not finish connecting to the others";
    return {Code::timeout, fmt::format("{} of {} {} within {}", late, size(), what, format_duration(timeout_))};
}

Assign Session::assignment(int rank) const {
    Assign made{number_, {}, {}, {}};
    if (shares_memory_) {
        made.memory = members_.of(0).memory;
        return made;
    }
    const int parent = tree_place(rank, size()).parent;
    if (parent < 0) return made;
    made.parent = members_.of(parent).who;
    made.parent_listener = members_.of(parent).listener;
    return made;
}

namespace {

constexpr std::size_t max_kept_failures = 16;  // memory of a job that is started many times

bool waits(const Session& session) {
    return session.stage() == Session::Stage::forming || session.stage() == Session::Stage::linking;
}

bool failed(const Session& session) { return session.stage() == Session::Stage::failed; }

}  // namespace

Session& Job::session_for(const Join& join, Moment now) {
    if (memory_) memory_->refuse(join.who.rank);
    const auto found = std::ranges::find_if(sessions_, [&](const Session& each) { return each.matches(join); });
    if (found != sessions_.end()) return *found;
    return sessions_.emplace_back(next_number_++, join, now);
}

Status Job::failure_in_memory(const Join& join) {
    if (!memory_ || memory_->state() != JobMemory::State::failed || join.nranks != memory_->nranks()) return {};
    const bool is_first = join.who.rank >= 0 && join.who.rank < join.nranks && memory_->claim(join.who.rank);
    return is_first ? memory_->failure() : Status{};
}

Session* Job::find(std::uint32_t number) {
    const auto found = std::ranges::find(sessions_, number, &Session::number);
    return found == sessions_.end() ? nullptr : &*found;
}

Session* Job::find_timed_out(Moment now) {
    const auto late = [now](const Session& each) { return waits(each) && each.deadline() <= now; };
    const auto found = std::ranges::find_if(sessions_, late);
    return found == sessions_.end() ? nullptr : &*found;
}

Deadline Job::next_deadline() const {
    Deadline next = Deadline::never();
    for (const Session& each : sessions_)
        if (waits(each)) next = next.sooner(Deadline::at(each.deadline()));
    return next;
}

void Job::rank_ended(int rank, int nranks, std::string how) {
    if (memory_ && memory_->nranks() == nranks) memory_->rank_ended(rank, how);
    ended_.push_back({rank, nranks, std::move(how)});
}

Session* Job::fail_for_ended_rank(Moment now) {
    for (Session& session : sessions_)
        for (const EndedRank& each : ended_)
            if (each.nranks == session.size() && session.is_missing(each.rank)) {
                session.fail(ended_without_joining(each.how), now);
                return &session;
            }
    return nullptr;
}

void Job::prune(Moment now) {
    using State = JobMemory::State;
    if (memory_ && (memory_->state() == State::complete || memory_->state() == State::refused)) memory_.reset();
    std::erase_if(sessions_, [now](const Session& each) {
        return each.stage() == Session::Stage::finished || each.is_expired(now);
    });
    while (static_cast<std::size_t>(std::ranges::count_if(sessions_, failed)) > max_kept_failures)
        sessions_.erase(std::ranges::find_if(sessions_, failed));
}

}  // namespace npushmem::rendezvous
