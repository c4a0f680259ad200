// SPDX-License-Identifier: BSD-3-Clause
// Opens an authenticated channel to a listener: connects, sends hello, checks the challenge, and retries with backoff
// while the other side does not listen yet. Never waits; its owner polls. One thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>

#include "bootstrap/rendezvous/authentication.hpp"
#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/deadline.hpp"

namespace npushmem::rendezvous {

class Connector {
public:
    // `peer_name` for messages: "the rendezvous service".
    Connector(const Address& target, const Credentials& credentials, std::uint32_t session, std::string peer_name);

    // The descriptor and events to poll; fd -1 between attempts.
    [[nodiscard]] pollfd interest() const;
    // When step() must be called although the descriptor has no event.
    [[nodiscard]] Deadline next_timeout() const { return Deadline::at(next_timeout_); }
    // Makes progress without waiting. True once the channel is open; an error if a retry cannot help.
    Result<bool> step(Moment now = Clock::now());
    [[nodiscard]] Channel take() { return std::move(*channel_); }
    // "the rendezvous service at 10.0.0.1:4000: connection refused (12 attempts)"
    [[nodiscard]] std::string describe_failure() const;

private:
    Status begin(Moment now);
    void schedule_retry(std::string why, Moment now);
    Result<bool> receive_challenge(Moment now);
    Result<bool> check_challenge(const Frame& challenge);
    [[nodiscard]] Status permanent_failure(Code code, const std::string& why) const;

    Address target_;
    Credentials credentials_;
    std::uint32_t session_;
    std::string peer_name_;
    Nonce nonce_{};
    std::optional<Channel> channel_;  // none between attempts
    Moment next_timeout_{};           // the next attempt, or the timeout of this one
    Clock::duration backoff_;
    int attempts_ = 0;
    std::string last_error_ = "no answer yet";
};

}  // namespace npushmem::rendezvous
