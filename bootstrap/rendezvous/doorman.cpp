#include "bootstrap/rendezvous/doorman.hpp"

#include <cerrno>

#include "bootstrap/rendezvous/handshake.hpp"
#include "bootstrap/rendezvous/random.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::uint64_t listener_key = 0;
constexpr int accepts_per_round = 64;  // then those already inside get a turn
constexpr std::size_t greeting_bytes = 64;
constexpr Milliseconds deaf_time{20};

}  // namespace

Result<Doorman> Doorman::make(Socket listener, std::uint32_t session, FindCredentials find) {
    return make(std::move(listener), session, std::move(find), Limits{});
}

Result<Doorman> Doorman::make(Socket listener, std::uint32_t session, FindCredentials find, Limits limits) {
    auto poller = Poller::make();
    if (!poller.ok()) return poller.status();
    if (Status watched = poller.value().watch(listener.fd(), listener_key); !watched.ok()) return watched;
    return Doorman(std::move(listener), std::move(poller).value(), session, std::move(find), limits);
}

Doorman::Doorman(Socket listener, Poller poller, std::uint32_t session, FindCredentials find, Limits limits)
    : listener_(std::move(listener)),
      poller_(std::move(poller)),
      session_(session),
      find_(std::move(find)),
      limits_(limits) {}

std::vector<Admitted> Doorman::serve(Moment now) {
    std::vector<Admitted> admitted;
    expire(now);
    for (const Poller::Event& event : poller_.wait(Deadline::now())) {
        if (event.key == listener_key) {
            accept_all(now);
            continue;
        }
        const auto found = strangers_.find(event.key);
        if (found == strangers_.end()) continue;  // turned away earlier in this round
        std::optional<Frame> first;
        const Verdict verdict = hear(found->second, first);
        if (verdict == Verdict::wait) continue;
        auto leaving = strangers_.extract(found);
        if (verdict == Verdict::turn_away) continue;
        poller_.forget(leaving.mapped().channel.fd());
        admitted.push_back({leaving.mapped().job, std::move(leaving.mapped().channel), std::move(*first)});
    }
    return admitted;
}

void Doorman::accept_all(Moment now) {
    for (int i = 0; i < accepts_per_round; ++i) {
        int error = 0;
        Socket connection = listener_.accept(error);
        if (connection.valid()) {
            take_in(std::move(connection), now);
        } else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
            return out_of_descriptors(now);
        } else if (error == EAGAIN || error == EWOULDBLOCK) {
            return;
        }  // else: that connection died in the queue, or a signal came
    }
}

void Doorman::take_in(Socket connection, Moment now) {
    if (strangers_.size() >= limits_.strangers) strangers_.erase(strangers_.begin());
    const Id id = next_id_++;
    if (!poller_.watch(connection.fd(), id).ok()) return;
    strangers_.emplace(id, Stranger{Channel(std::move(connection), session_, greeting_bytes), now});
}

// Strangers give way first. With none left the listener rests a moment, since it would stay readable and make us spin.
void Doorman::out_of_descriptors(Moment now) {
    if (!strangers_.empty()) {
        strangers_.erase(strangers_.begin());
        return;
    }
    poller_.rewatch(listener_.fd(), listener_key, false, false);
    deaf_until_ = now + deaf_time;
}

void Doorman::expire(Moment now) {
    while (!strangers_.empty() && strangers_.begin()->second.arrived + limits_.patience <= now)
        strangers_.erase(strangers_.begin());
    if (deaf_until_ && *deaf_until_ <= now) {
        deaf_until_.reset();
        poller_.rewatch(listener_.fd(), listener_key, true, false);
    }
}

Deadline Doorman::next_duty() const {
    Deadline duty = deaf_until_ ? Deadline::at(*deaf_until_) : Deadline::never();
    if (!strangers_.empty()) duty = duty.sooner(Deadline::at(strangers_.begin()->second.arrived + limits_.patience));
    return duty;
}

Doorman::Verdict Doorman::hear(Stranger& stranger, std::optional<Frame>& first) {
    if (stranger.channel.fill() == Channel::Input::end) return Verdict::turn_away;
    for (;;) {
        auto frame = stranger.channel.next();
        if (!frame.ok() && frame.status().code() == Code::unsupported) {
            // Another version: our own frame, whatever it says, tells the other side which one we speak.
            stranger.channel.queue(FrameType::challenge, {});
            stranger.channel.finish();
        }
        if (!frame.ok()) return Verdict::turn_away;
        if (!frame.value()) return Verdict::wait;
        if (stranger.challenged) {
            first = std::move(*frame.value());
            return Verdict::admit;
        }
        if (challenge(stranger, *frame.value()) == Verdict::turn_away) return Verdict::turn_away;
    }
}

// A job that is not served here is answered like any other, under a secret that nobody knows: the port does not tell
// strangers which jobs exist, and an honest rank learns at once that its id is of no use here.
Doorman::Verdict Doorman::challenge(Stranger& stranger, const Frame& frame) {
    const auto hello = frame.type == FrameType::hello ? Hello::decode(frame.payload) : std::nullopt;
    if (!hello) return Verdict::turn_away;
    auto credentials = find_(hello->job);
    if (!credentials) {
        credentials.emplace();
        if (!fill_random(credentials->secret).ok()) return Verdict::turn_away;
    }
    Nonce nonce{};
    if (!fill_random(nonce).ok()) return Verdict::turn_away;
    const ConnectionKeys keys = derive_keys(*credentials, session_, hello->nonce, nonce);
    Channel& channel = stranger.channel;
    channel.secure(keys.acceptor, keys.connector);
    channel.allow_payload(limits::introduction_bytes);
    channel.queue(FrameType::challenge, {nonce});
    channel.flush();
    stranger.job = hello->job;
    stranger.challenged = true;
    return channel.queued() == 0 && !channel.send_closed() ? Verdict::wait : Verdict::turn_away;
}

}  // namespace npushmem::rendezvous
