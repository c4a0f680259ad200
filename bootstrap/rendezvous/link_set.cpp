#include "bootstrap/rendezvous/link_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

LinkSet::~LinkSet() {
    for (Link& link : links_) {
        if (!link.channel) continue;
        link.channel->queue(FrameType::bye, {});
        link.channel->finish();
    }
}

LinkSet::Index LinkSet::add(Channel channel, std::string peer, std::string peer_subtree) {
    channel.allow_payload(payload_limit(FrameType::up));
    links_.push_back({std::move(channel), std::move(peer), std::move(peer_subtree), {}});
    // Frames that arrived together with the introduction are in the channel already: poll does not report them.
    dispatch_received(links_.back());
    return links_.size() - 1;
}

void LinkSet::remove(Index link) {
    links_[link].channel->finish();
    links_[link].channel.reset();
    if (arbiter_ == link) arbiter_.reset();
    fail_as_suspected();
}

Status LinkSet::send(Index index, FrameType type, Channel::Parts payload) {
    Link& link = links_[index];
    if (!failure_.ok()) return failure_;
    if (!link.channel && suspected_failure_) return {};  // the arbiter reports the failure
    if (link.left || !link.channel) return peer_left(link);
    link.channel->queue(type, payload);
    link.channel->flush();
    return {};
}

Result<Frame> LinkSet::receive(Index index, Deadline deadline) {
    for (;;) {
        Link& link = links_[index];
        if (!failure_.ok()) return failure_;
        if (!link.inbox.empty()) {
            Frame frame = std::move(link.inbox.front());
            link.inbox.pop_front();
            return frame;
        }
        if (link.left) return peer_left(link);
        if (deadline.passed()) return timed_out(link.peer_subtree, deadline);
        if (Status now = exchange({}, deadline); !now.ok()) return now;
    }
}

Status LinkSet::drain(std::size_t bytes, Deadline deadline) {
    const auto full = [bytes](const Link& link) { return link.channel && link.channel->queued() > bytes; };
    for (;;) {
        const auto slow = std::ranges::find_if(links_, full);
        if (slow == links_.end()) return failure_;
        if (deadline.passed()) return timed_out(slow->peer, deadline);
        if (Status now = exchange({}, deadline); !now.ok()) return now;
    }
}

pollfd LinkSet::interest(const Link& link) const {
    if (!link.channel) return {-1, 0, 0};
    const bool room = link.inbox.size() < limits::inbox_frames;
    const bool output = link.channel->queued() > 0;
    return {link.channel->fd(), static_cast<short>((room ? POLLIN : 0) | (output ? POLLOUT : 0)), 0};
}

Status LinkSet::exchange(std::span<pollfd> others, Deadline deadline) {
    if (!failure_.ok()) return failure_;
    polled_.clear();
    for (const Link& link : links_) polled_.push_back(interest(link));
    polled_.insert(polled_.end(), others.begin(), others.end());
    if (suspected_failure_) deadline = deadline.sooner(suspected_failure_->until);
    const int ready = ::poll(polled_.data(), polled_.size(), deadline.poll_milliseconds());
    if (ready < 0 && errno != EINTR) return fail({Code::system, fmt::format("poll failed: {}", std::strerror(errno))});
    if (suspected_failure_ && suspected_failure_->until.passed()) fail_as_suspected();
    if (ready <= 0) return failure_;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        const auto events = polled_[i].revents;
        if ((events & POLLOUT) != 0 && links_[i].channel) links_[i].channel->flush();
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(links_[i]);
    }
    std::copy(polled_.begin() + static_cast<std::ptrdiff_t>(links_.size()), polled_.end(), others.begin());
    return failure_;
}

void LinkSet::read(Link& link) {
    if (!link.channel) return;
    const Channel::Input input = link.channel->fill();
    dispatch_received(link);
    if (input == Channel::Input::end) on_end(link);
}

void LinkSet::dispatch_received(Link& link) {
    for (;;) {
        auto frame = link.channel->next();
        if (!frame.ok()) (void)fail(frame.status().within(fmt::format("{} to {}", link.peer, me_)));
        if (!frame.ok() || !frame.value()) return;
        dispatch(link, std::move(*frame.value()));
    }
}

void LinkSet::dispatch(Link& link, Frame frame) {
    switch (frame.type) {
        case FrameType::abort: return on_abort(link, frame);
        case FrameType::bye: link.left = true; return;
        default: link.inbox.push_back(std::move(frame));
    }
}

void LinkSet::on_end(Link& link) {
    link.channel.reset();
    if (link.left || !failure_.ok()) return;
    Status cause{Code::peer_dead,
                 fmt::format("{} closed its connection {} (it ended or was killed)", link.peer, activity_)};
    if (!suspected_failure_)
        suspected_failure_ = SuspectedFailure{std::move(cause), Deadline::after(limits::cause_report_grace)};
    if (!arbiter_may_report(link)) fail_as_suspected();
}

bool LinkSet::arbiter_may_report(const Link& closed) const {
    return arbiter_ && &links_[*arbiter_] != &closed && links_[*arbiter_].channel;
}

void LinkSet::fail_as_suspected() {
    if (suspected_failure_) (void)fail(suspected_failure_->cause);
}

void LinkSet::on_abort(const Link& from, const Frame& frame) {
    if (!failure_.ok()) return;
    const auto failure = Failure::decode(frame.payload);
    failure_ = failure ? failure->cause : Status{Code::protocol, from.peer + " sent an abort that cannot be read"};
    broadcast_failure(&from);
}

Status LinkSet::check() { return exchange({}, Deadline::now()); }

Status LinkSet::fail(Status cause) {
    if (!failure_.ok()) return failure_;
    failure_ = std::move(cause);
    broadcast_failure(nullptr);
    return failure_;
}

// A peer receives the abort when it reads again. Only if data fills its buffers it does not; then the closed link shows
// it the failure.
void LinkSet::broadcast_failure(const Link* except) {
    const Buffer words = Failure{failure_}.encode();
    const auto deadline = Deadline::after(limits::abort_send_timeout);
    std::vector<pollfd> waiting;
    do {
        waiting.clear();
        for (Link& link : links_) {
            if (!link.channel || &link == except) continue;
            if (!link.notified) link.channel->queue(FrameType::abort, {words});
            link.notified = true;
            link.channel->flush();
            if (link.channel->queued() > 0) waiting.push_back({link.channel->fd(), POLLOUT, 0});
        }
    } while (!waiting.empty() && ::poll(waiting.data(), waiting.size(), deadline.poll_milliseconds()) > 0);
}

Status LinkSet::peer_left(const Link& link) {
    return fail({Code::peer_dead, fmt::format("{} left the job, but {} needs it {}", link.peer, me_, activity_)});
}

Status LinkSet::timed_out(const std::string& peer, Deadline deadline) {
    return fail(
        {Code::timeout, fmt::format("{} waited {} for {} {}", me_, format_duration(deadline.span()), peer, activity_)});
}

}  // namespace npushmem::rendezvous
