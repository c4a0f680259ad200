// Admits those who hold the credentials and keeps everybody else outside.
//
// It owns a listener and the connections that have not proved themselves yet ("strangers"). Each stranger has a few
// seconds for the handshake and a few hundred bytes of memory; when there are too many, the oldest goes first, since an
// honest rank needs milliseconds and comes back when it is turned away. All of them hang on one epoll descriptor, which
// is readable when serve() has something to do, so that an owner can wait for it in whatever way it waits.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/credentials.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/limits.hpp"
#include "bootstrap/rendezvous/poller.hpp"
#include "bootstrap/rendezvous/socket.hpp"

namespace npushmem::rendezvous {

// A connection that has proved itself by its first signed frame.
struct Admitted {
    Nonce job;
    Channel channel;
    Frame first;
};

class Doorman {
public:
    // The credentials of a job, or none when no such job is served here.
    using FindCredentials = std::function<std::optional<Credentials>(const Nonce& job)>;
    struct Limits {
        std::size_t strangers = limits::strangers;
        Clock::duration patience = limits::stranger_patience;
    };

    static Result<Doorman> make(Socket listener, std::uint32_t session, FindCredentials find);
    static Result<Doorman> make(Socket listener, std::uint32_t session, FindCredentials find, Limits limits);

    [[nodiscard]] int fd() const { return poller_.fd(); }
    [[nodiscard]] Address address() const { return listener_.local_address(); }
    [[nodiscard]] std::size_t strangers() const { return strangers_.size(); }
    // Only connections that name this session are admitted from now on.
    void expect_session(std::uint32_t session) { session_ = session; }

    // Accepts, reads, answers, and turns away, without waiting. Returns those who were admitted.
    std::vector<Admitted> serve(Moment now = Clock::now());
    // When serve() has something to do even if the descriptor stays quiet.
    [[nodiscard]] Deadline next_duty() const;

private:
    struct Stranger {
        Channel channel;
        Moment arrived;
        Nonce job{};
        bool challenged = false;
    };
    using Id = std::uint64_t;  // order of arrival; 0 is the listener
    enum class Verdict { wait, admit, turn_away };

    Doorman(Socket listener, Poller poller, std::uint32_t session, FindCredentials find, Limits limits);

    void accept_all(Moment now);
    void take_in(Socket connection, Moment now);
    void out_of_descriptors(Moment now);
    void expire(Moment now);
    Verdict hear(Stranger& stranger, std::optional<Frame>& first);
    Verdict challenge(Stranger& stranger, const Frame& hello);

    Socket listener_;
    Poller poller_;
    std::uint32_t session_;
    FindCredentials find_;
    Limits limits_;
    Id next_id_ = 1;
    std::map<Id, Stranger> strangers_;
    std::optional<Moment> deaf_until_;  // accepting is suspended: no file descriptors were left
};

}  // namespace npushmem::rendezvous
