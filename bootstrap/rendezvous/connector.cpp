// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/rendezvous/authentication.hpp"
#include "bootstrap/rendezvous/settings.hpp"

namespace npushmem::rendezvous {

Connector::Connector(const Address& target, const Credentials& credentials, std::uint32_t session,
                     std::string peer_name)
    : target_(target),
      credentials_(credentials),
      session_(session),
      peer_name_(std::move(peer_name)),
      backoff_(limits::min_backoff) {}

pollfd Connector::interest() const {
    if (!channel_) return {-1, 0, 0};
    return {channel_->fd(), static_cast<short>(POLLIN | (channel_->queued() > 0 ? POLLOUT : 0)), 0};
}

std::string Connector::describe_failure() const {
    return fmt::format("{} at {}: {} ({} attempt{})", peer_name_, target_.text(), last_error_, attempts_,
                       attempts_ == 1 ? "" : "s");
}

Result<bool> Connector::step(Moment now) {
    if (channel_ && now >= next_timeout_) schedule_retry("no answer in the handshake", now);
    if (!channel_ && now < next_timeout_) return false;
    if (!channel_)
        if (Status begun = begin(now); !begun.ok()) return begun;
    if (!channel_) return false;
    if (const int error = channel_->socket().connect_error(); error != 0) {
        schedule_retry(std::strerror(error), now);
        return false;
    }
    channel_->flush();
    return receive_challenge(now);
}

Status Connector::begin(Moment now) {
    ++attempts_;
    auto socket = Socket::connect(target_);
    if (!socket.ok()) {
        schedule_retry(socket.status().message(), now);
        return {};
    }
    if (Status random = fill_random(nonce_); !random.ok()) return random;
    channel_.emplace(std::move(socket).value(), session_, limits::introduction_bytes);
    channel_->queue(FrameType::hello, {Hello{credentials_.job, nonce_}.encode()});
    next_timeout_ = now + limits::attempt_timeout;
    return {};
}

void Connector::schedule_retry(std::string why, Moment now) {
    last_error_ = std::move(why);
    channel_.reset();
    next_timeout_ = now + backoff_;
    backoff_ = std::min<Clock::duration>(2 * backoff_, limits::max_backoff);
}

Result<bool> Connector::receive_challenge(Moment now) {
    const Channel::Input input = channel_->fill();
    const auto frame = channel_->peek();
    if (!frame.ok()) return permanent_failure(frame.status().code(), frame.status().message());
    if (frame.value()) return check_challenge(*frame.value());
    if (input == Channel::Input::end) schedule_retry("it closed the connection during the handshake", now);
    return false;
}

Result<bool> Connector::check_challenge(const Frame& challenge) {
    if (challenge.type != FrameType::challenge || challenge.payload.size() != nonce_.size())
        return permanent_failure(Code::protocol, "its answer in the handshake does not follow this protocol");
    Nonce theirs{};
    std::ranges::copy(challenge.payload, theirs.begin());
    const ConnectionKeys keys = derive_keys(credentials_, session_, nonce_, theirs);
    channel_->secure(keys.connector, keys.acceptor);
    if (!channel_->next().ok())
        return permanent_failure(
            Code::protocol,
            "it does not know this job's secret; the unique id belongs to another job or is out of date");
    return true;
}

Status Connector::permanent_failure(Code code, const std::string& why) const {
    return {code, fmt::format("cannot talk to {} at {}: {}", peer_name_, target_.text(), why)};
}

}  // namespace npushmem::rendezvous
