#include "bootstrap/rendezvous/job.hpp"

#include <algorithm>

namespace npushmem::rendezvous {
namespace {

constexpr std::size_t max_kept_failures = 16;  // a job that is started again and again must not grow for ever

bool waits(const Session& session) {
    return session.stage() == Session::Stage::forming || session.stage() == Session::Stage::linking;
}

bool failed(const Session& session) { return session.stage() == Session::Stage::failed; }

}  // namespace

Session& Job::session_for(const Join& join, Moment now) {
    const auto found = std::ranges::find_if(sessions_, [&](const Session& each) { return each.matches(join); });
    if (found != sessions_.end()) return *found;
    return sessions_.emplace_back(next_number_++, join, now);
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

void Job::rank_ended(int rank, int nranks, std::string how) { ended_.push_back({rank, nranks, std::move(how)}); }

Session* Job::fail_for_ended_rank(Moment now) {
    for (Session& session : sessions_)
        for (const EndedRank& each : ended_)
            if (each.nranks == session.size() && session.is_missing(each.rank)) {
                session.fail(Session::ended_without_joining(each.how), now);
                return &session;
            }
    return nullptr;
}

void Job::prune(Moment now) {
    std::erase_if(sessions_, [now](const Session& each) {
        return each.stage() == Session::Stage::finished || each.is_expired(now);
    });
    while (static_cast<std::size_t>(std::ranges::count_if(sessions_, failed)) > max_kept_failures)
        sessions_.erase(std::ranges::find_if(sessions_, failed));
}

}  // namespace npushmem::rendezvous
