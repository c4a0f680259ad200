// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/link_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

pollfd PeerLink::interest() const {
    if (!channel_) return {-1, 0, 0};
    const bool room = inbox_.size() < limits::inbox_frames;
    const bool output = channel_->queued() > 0;
    return {channel_->fd(), static_cast<short>((room ? POLLIN : 0) | (output ? POLLOUT : 0)), 0};
}

void PeerLink::send(FrameType type, Channel::Parts payload) {
    channel_->queue(type, payload);
    channel_->flush();
}

void PeerLink::send_abort(std::span<const std::byte> failure) {
    if (!abort_queued_) channel_->queue(FrameType::abort, {failure});
    abort_queued_ = true;
    channel_->flush();
}

void PeerLink::flush() {
    if (channel_) channel_->flush();
}

void PeerLink::finish() {
    channel_->finish();
    close();
}

void PeerLink::leave() {
    if (!channel_) return;
    channel_->queue(FrameType::bye, {});
    finish();
}

Result<std::optional<Frame>> PeerLink::next_abort() {
    for (;;) {
        auto frame = channel_->next();
        if (!frame.ok() || !frame.value()) return frame;
        switch (frame.value()->type) {
            case FrameType::abort: return frame;
            case FrameType::bye: left_ = true; break;
            default: inbox_.push_back(std::move(*frame.value()));
        }
    }
}

std::optional<Frame> PeerLink::take() {
    if (inbox_.empty()) return std::nullopt;
    std::optional<Frame> frame = std::move(inbox_.front());
    inbox_.pop_front();
    return frame;
}

LinkSet::~LinkSet() {
    for (PeerLink& link : links_) link.leave();
}

LinkSet::Index LinkSet::add(Channel channel, std::string peer, std::string peer_subtree) {
    channel.allow_payload(payload_limit(FrameType::up));
    links_.emplace_back(std::move(channel), std::move(peer), std::move(peer_subtree));
    // Frames that arrived together with the introduction are in the channel already: poll does not report them.
    dispatch_received(links_.back());
    return links_.size() - 1;
}

void LinkSet::remove(Index link) {
    links_[link].finish();
    if (arbiter_ == link) arbiter_.reset();
    fail_as_suspected();
}

Status LinkSet::send(Index index, FrameType type, Channel::Parts payload) {
    PeerLink& link = links_[index];
    if (!failure_.ok()) return failure_;
    if (!link.is_open() && suspected_failure_) return {};  // the arbiter reports the failure
    if (link.has_left() || !link.is_open()) return peer_left(link);
    link.send(type, payload);
    return {};
}

Result<Frame> LinkSet::receive(Index index, Deadline deadline) {
    for (;;) {
        PeerLink& link = links_[index];
        if (!failure_.ok()) return failure_;
        if (auto frame = link.take()) return std::move(*frame);
        if (link.has_left()) return peer_left(link);
        if (deadline.passed()) return timed_out(link.peer_subtree(), deadline);
        if (Status now = exchange({}, deadline); !now.ok()) return now;
    }
}

Status LinkSet::drain(std::size_t bytes, Deadline deadline) {
    const auto full = [bytes](const PeerLink& link) { return link.queued() > bytes; };
    for (;;) {
        const auto slow = std::ranges::find_if(links_, full);
        if (slow == links_.end()) return failure_;
        if (deadline.passed()) return timed_out(slow->peer(), deadline);
        if (Status now = exchange({}, deadline); !now.ok()) return now;
    }
}

Status LinkSet::exchange(std::span<pollfd> others, Deadline deadline) {
    if (!failure_.ok()) return failure_;
    polled_.clear();
    for (const PeerLink& link : links_) polled_.push_back(link.interest());
    polled_.insert(polled_.end(), others.begin(), others.end());
    if (suspected_failure_) deadline = deadline.sooner(suspected_failure_->until);
    const int ready = ::poll(polled_.data(), polled_.size(), deadline.poll_milliseconds());
    if (ready < 0 && errno != EINTR) return fail({Code::system, fmt::format("poll failed: {}", std::strerror(errno))});
    if (suspected_failure_ && suspected_failure_->until.passed()) fail_as_suspected();
    if (ready <= 0) return failure_;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        const auto events = polled_[i].revents;
        if ((events & POLLOUT) != 0) links_[i].flush();
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(links_[i]);
    }
    std::copy(polled_.begin() + static_cast<std::ptrdiff_t>(links_.size()), polled_.end(), others.begin());
    return failure_;
}

void LinkSet::read(PeerLink& link) {
    if (!link.is_open()) return;
    const Channel::Input input = link.fill();
    dispatch_received(link);
    if (input == Channel::Input::end) on_end(link);
}

void LinkSet::dispatch_received(PeerLink& link) {
    for (;;) {
        const auto abort = link.next_abort();
        if (!abort.ok()) (void)fail(abort.status().within(fmt::format("{} to {}", link.peer(), me_)));
        if (!abort.ok() || !abort.value()) return;
        if (!failure_.ok()) continue;
        const auto failure = Failure::decode(abort.value()->payload);
        failure_ =
            failure ? failure->cause : Status{Code::protocol, link.peer() + " sent an abort that cannot be read"};
        broadcast_failure(&link);
    }
}

void LinkSet::on_end(PeerLink& link) {
    link.close();
    if (link.has_left() || !failure_.ok()) return;
    Status cause{Code::peer_dead,
                 fmt::format("{} closed its connection {} (it ended or was killed)", link.peer(), activity_)};
    if (!suspected_failure_)
        suspected_failure_ = SuspectedFailure{std::move(cause), Deadline::after(limits::cause_report_grace)};
    const bool arbiter_may_report = arbiter_ && links_[*arbiter_].is_open();
    if (!arbiter_may_report) fail_as_suspected();
}

void LinkSet::fail_as_suspected() {
    if (suspected_failure_) (void)fail(suspected_failure_->cause);
}

Status LinkSet::fail(Status cause) {
    if (!failure_.ok()) return failure_;
    failure_ = std::move(cause);
    broadcast_failure(nullptr);
    return failure_;
}

// A peer receives the abort when it reads again. Only if data fills its buffers it does not; then the closed link shows
// it the failure.
void LinkSet::broadcast_failure(const PeerLink* except) {
    const Buffer words = Failure{failure_}.encode();
    const auto deadline = Deadline::after(limits::abort_send_timeout);
    std::vector<pollfd> waiting;
    do {
        waiting.clear();
        for (PeerLink& link : links_) {
            if (!link.is_open() || &link == except) continue;
            link.send_abort(words);
            if (link.queued() > 0) waiting.push_back({link.interest().fd, POLLOUT, 0});
        }
    } while (!waiting.empty() && ::poll(waiting.data(), waiting.size(), deadline.poll_milliseconds()) > 0);
}

Status LinkSet::peer_left(const PeerLink& link) {
    return fail({Code::peer_dead, fmt::format("{} left the job, but {} needs it {}", link.peer(), me_, activity_)});
}

Status LinkSet::timed_out(const std::string& peer, Deadline deadline) {
    return fail(
        {Code::timeout, fmt::format("{} waited {} for {} {}", me_, format_duration(deadline.span()), peer, activity_)});
}

}  // namespace npushmem::rendezvous
