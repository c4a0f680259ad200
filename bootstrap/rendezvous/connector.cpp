#include "bootstrap/rendezvous/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/rendezvous/handshake.hpp"
#include "bootstrap/rendezvous/limits.hpp"
#include "bootstrap/rendezvous/random.hpp"

namespace npushmem::rendezvous {

Connector::Connector(const Address& target, const Credentials& credentials, std::uint32_t session, std::string whom)
    : target_(target),
      credentials_(credentials),
      session_(session),
      whom_(std::move(whom)),
      backoff_(limits::first_backoff) {}

pollfd Connector::interest() const {
    if (!channel_) return {-1, 0, 0};
    return {channel_->fd(), static_cast<short>(POLLIN | (channel_->queued() > 0 ? POLLOUT : 0)), 0};
}

std::string Connector::trouble() const {
    return fmt::format("{} at {}: {} ({} attempt{})", whom_, target_.text(), last_trouble_, attempts_,
                       attempts_ == 1 ? "" : "s");
}

Result<bool> Connector::step(Moment now) {
    if (channel_ && now >= next_duty_) pause("no answer to the greeting", now);
    if (!channel_ && now < next_duty_) return false;
    if (!channel_)
        if (Status begun = begin(now); !begun.ok()) return begun;
    if (!channel_) return false;
    if (const int error = channel_->socket().connect_error(); error != 0) {
        pause(std::strerror(error), now);
        return false;
    }
    channel_->flush();
    return listen_to_answer(now);
}

Status Connector::begin(Moment now) {
    ++attempts_;
    auto socket = Socket::connect(target_);
    if (!socket.ok()) {
        pause(socket.status().message(), now);
        return {};
    }
    if (Status random = fill_random(nonce_); !random.ok()) return random;
    channel_.emplace(std::move(socket).value(), session_, limits::introduction_bytes);
    channel_->queue(FrameType::hello, {Hello{credentials_.job, nonce_}.encode()});
    next_duty_ = now + limits::attempt_patience;
    return {};
}

void Connector::pause(std::string why, Moment now) {
    last_trouble_ = std::move(why);
    channel_.reset();
    next_duty_ = now + backoff_;
    backoff_ = std::min<Clock::duration>(2 * backoff_, limits::longest_backoff);
}

Result<bool> Connector::listen_to_answer(Moment now) {
    const Channel::Input input = channel_->fill();
    const auto frame = channel_->peek();
    if (!frame.ok()) return hopeless(frame.status().code(), frame.status().message());
    if (frame.value()) return check_challenge(*frame.value());
    if (input == Channel::Input::end) pause("it closed the connection during the greeting", now);
    return false;
}

Result<bool> Connector::check_challenge(const Frame& challenge) {
    if (challenge.type != FrameType::challenge || challenge.payload.size() != nonce_.size())
        return hopeless(Code::protocol, "it did not answer the greeting as this protocol wants");
    Nonce theirs{};
    std::ranges::copy(challenge.payload, theirs.begin());
    const ConnectionKeys keys = derive_keys(credentials_, session_, nonce_, theirs);
    channel_->secure(keys.connector, keys.acceptor);
    if (!channel_->next().ok())
        return hopeless(Code::protocol,
                        "it does not know this job's secret; the unique id is of another job or out of date");
    return true;
}

Status Connector::hopeless(Code code, const std::string& why) const {
    return {code, fmt::format("cannot talk to {} at {}: {}", whom_, target_.text(), why)};
}

}  // namespace npushmem::rendezvous
