// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/mutants/bootstrap_star.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "npushmem/plugin/host.hpp"

namespace npushmem::contract {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view magic = "star";
constexpr std::size_t id_bytes = 20;  // the magic and random bytes; zeros follow
constexpr std::size_t max_reason_bytes = 1000;
constexpr std::size_t short_message_bytes = 500;  // for the defect long_reason_rejected
constexpr int listener_number = -1;               // of await_input

std::chrono::seconds seconds_of(const Host& host, const char* name, int otherwise) {
    const int value = std::atoi(host.config(name).c_str());
    return std::chrono::seconds(value > 0 ? value : otherwise);
}

int milliseconds_until(Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
}

socklen_t fill_address(sockaddr_un& address, const std::string& name) {
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // an abstract name: it has no file
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::string name_from(std::span<const std::byte> id) {
    std::string out = "npushmem-star-";
    for (const std::byte each : id.first(id_bytes)) {
        out += "0123456789abcdef"[static_cast<unsigned>(each) >> 4U];
        out += "0123456789abcdef"[static_cast<unsigned>(each) & 15U];
    }
    return out;
}

Status system_failure(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

StarBootstrap::StarBootstrap(StarDefect defect, int rank, int nranks)
    : defect_(defect), rank_(rank), nranks_(nranks), links_(static_cast<std::size_t>(nranks), -1) {}

StarBootstrap::~StarBootstrap() {
    for (const int link : links_)
        if (link >= 0 && !is(StarDefect::descriptors_leak)) ::close(link);
}

int StarBootstrap::nranks() const { return nranks_ + (is(StarDefect::wrong_number_of_ranks) ? 1 : 0); }

Status StarBootstrap::get_uniqueid(StarDefect defect, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    std::fill(id.begin(), id.end(), std::byte{0});
    std::memcpy(id.data(), magic.data(), magic.size());
    const auto random = id.first(id_bytes).subspan(magic.size());
    if (defect == StarDefect::ids_repeat) return {};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        return system_failure("make an id");
    return {};
}

Result<std::unique_ptr<Bootstrap>> StarBootstrap::open(StarDefect defect, const npushmem_host& table,
                                                       const npushmem_bootstrap_params& params) {
    const Host host(&table, "star");
    const std::string place = rank_text(params.rank) + " of " + std::to_string(params.nranks);
    if (params.nranks < 1) return Status{Code::argument, place + ": a job has at least one rank"};
    const bool inside = params.rank >= 0 && params.rank < params.nranks;
    if (!inside && defect != StarDefect::numbers_unchecked) return Status{Code::range, place + " is outside the job"};
    if (params.uniqueid == nullptr) return Status{Code::argument, place + " has no unique id"};
    const std::span id(static_cast<const std::byte*>(params.uniqueid), NPUSHMEM_UNIQUEID_BYTES);
    if (defect != StarDefect::ids_unchecked && std::memcmp(id.data(), magic.data(), magic.size()) != 0)
        return Status{Code::argument, "the unique id is not one of this bootstrap"};
    std::unique_ptr<StarBootstrap> made(new StarBootstrap(defect, params.rank, params.nranks));
    auto timeout = seconds_of(host, "BOOTSTRAP_TIMEOUT", 20);
    made->call_timeout_ = seconds_of(host, "BOOTSTRAP_COLLECTIVE_TIMEOUT", static_cast<int>(timeout.count()));
    if (defect == StarDefect::open_without_limit) timeout = std::chrono::hours(1);
    const bool impatient = defect == StarDefect::late_ranks_rejected;
    const auto until = Clock::now() + (impatient ? std::chrono::milliseconds(2) : std::chrono::milliseconds(timeout));
    const std::string name = defect == StarDefect::ids_ignored ? "npushmem-star" : name_from(id);
    if (Status joined = made->join(name, until); !joined.ok()) return joined;
    return std::unique_ptr<Bootstrap>(std::move(made));
}

Status StarBootstrap::join(const std::string& name, Moment until) {
    if (nranks_ == 1) return {};
    if (rank_ != 0) return connect_to_rank_0(name, until);
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    const socklen_t length = fill_address(address, name);
    Status status;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener, nranks_) != 0)
        status = system_failure("there is no place for rank 0 to listen");
    else
        status = accept_ranks(listener, until);
    // Before any rank leaves open: one that joins the next job of this id must not reach this one.
    if (!is(StarDefect::ids_ignored)) ::close(listener);
    if (!status.ok()) return fail(status);
    for (int rank = 1; rank < nranks_; ++rank)
        (void)send(links_[static_cast<std::size_t>(rank)], {Type::go, 0, 0}, {}, until);
    return {};
}

Status StarBootstrap::accept_ranks(int listener, Moment until) {
    for (int joined = 1; joined < nranks_;) {
        std::vector<int> watched;
        for (int rank = 1; rank < nranks_; ++rank)
            if (links_[static_cast<std::size_t>(rank)] >= 0) watched.push_back(rank);
        const auto ready = await_input(watched, listener, until);
        if (!ready.ok()) return ready.status();
        if (ready.value() != listener_number)
            return {Code::peer_dead, rank_text(ready.value()) + " left while the job was starting"};
        const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) continue;
        if (Status accepted = accept_rank(connection, until); !accepted.ok()) return accepted;
        ++joined;
    }
    return {};
}

Status StarBootstrap::accept_rank(int connection, Moment until) {
    // Rank 0 has no link to itself: its place serves until the rank is known.
    links_[0] = connection;
    const auto hello = receive(0, until);
    links_[0] = -1;
    Status status = hello.status();
    const int rank = status.ok() ? hello.value().header.number : 0;
    int theirs = 0;
    if (status.ok() && hello.value().payload.size() == sizeof theirs)
        std::memcpy(&theirs, hello.value().payload.data(), sizeof theirs);
    const bool known = rank > 0 && rank < nranks_;
    if (status.ok() && (theirs != nranks_ || !known || links_[static_cast<std::size_t>(rank)] >= 0))
        status = {Code::mismatch, "there is no place for " + rank_text(rank) + " of " + std::to_string(theirs) +
                                      " in a job of " + std::to_string(nranks_)};
    if (status.ok()) {
        links_[static_cast<std::size_t>(rank)] = connection;
        return {};
    }
    (void)send(connection, {Type::failure, static_cast<std::int32_t>(status.code()), status.message().size()},
               std::as_bytes(std::span(status.message())), until);
    ::close(connection);
    return status;
}

Status StarBootstrap::connect_to_rank_0(const std::string& name, Moment until) {
    sockaddr_un address{};
    const socklen_t length = fill_address(address, name);
    for (;;) {
        const int link = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (link < 0) return system_failure("make a socket");
        links_[0] = link;
        if (::connect(link, reinterpret_cast<sockaddr*>(&address), length) == 0) break;
        ::close(link);
        links_[0] = -1;
        if (Clock::now() > until) return {Code::timeout, rank_text(rank_) + " could not reach rank 0 in time"};
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (Status sent =
            send(links_[0], {Type::hello, rank_, sizeof nranks_}, std::as_bytes(std::span(&nranks_, 1)), until);
        !sent.ok())
        return sent;
    const auto answer = receive(0, until);
    if (!answer.ok()) return answer.status();
    return answer.value().header.type == Type::go ? Status{} : failure_in(answer.value());
}

Status StarBootstrap::barrier() {
    if (is(StarDefect::barrier_returns_early)) return {};
    return exchange(Type::barrier, {}, {});
}

Status StarBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    if (is(StarDefect::in_place_unsupported)) std::fill(receive.begin(), receive.end(), std::byte{0});
    if (is(StarDefect::empty_gather_skipped) && send.empty() && rank_ == nranks_ - 1) return failure_;
    if (is(StarDefect::crashes_in_allgather) && rank_ == nranks_ - 1) std::raise(SIGSEGV);
    return exchange(Type::gather, send, receive);
}

Status StarBootstrap::exchange(Type call, std::span<const std::byte> send, std::span<std::byte> receive) {
    if (!failure_.ok()) return failure_;
    Bytes all;
    Status status = rank_ == 0 ? gather_at_rank_0(call, send, all) : ask_rank_0(call, send, all);
    if (status.ok()) status = deliver(all, receive);
    return status.ok() ? status : fail(status);
}

Status StarBootstrap::gather_at_rank_0(Type call, std::span<const std::byte> send, Bytes& all) {
    const auto until = deadline_of_call();
    std::vector<Bytes> parts(static_cast<std::size_t>(nranks_));
    parts[0].assign(send.begin(), send.end());
    std::vector<int> missing;
    for (int rank = 1; rank < nranks_; ++rank) missing.push_back(rank);
    const bool checks_sizes = !is(StarDefect::sizes_unchecked) && !is(StarDefect::sizes_truncated);
    while (!missing.empty()) {
        const auto ready = await_input(missing, -1, until);
        if (!ready.ok()) return ready.status();
        auto message = receive(ready.value(), until);
        if (!message.ok()) return message.status();
        const Header& header = message.value().header;
        if (header.type == Type::failure) return failure_in(message.value());
        if (header.type != call || (checks_sizes && header.bytes != send.size()))
            return {Code::mismatch, rank_text(ready.value()) + " gave " + std::to_string(header.bytes) +
                                        " bytes, rank 0 gave " + std::to_string(send.size())};
        parts[static_cast<std::size_t>(ready.value())] = std::move(message.value().payload);
        missing.erase(std::find(missing.begin(), missing.end(), ready.value()));
    }
    if (is(StarDefect::ranks_in_wrong_order)) std::rotate(parts.begin(), parts.begin() + 1, parts.end());
    for (Bytes& part : parts) {
        constexpr std::size_t limit = 65536;
        if (is(StarDefect::large_parts_truncated) && part.size() > limit)
            std::fill(part.begin() + limit, part.end(), std::byte{0});
        all.insert(all.end(), part.begin(), part.end());
    }
    // A rank that is gone by now is missed by the next call.
    for (int rank = 1; rank < nranks_; ++rank)
        (void)this->send(links_[static_cast<std::size_t>(rank)], {Type::result, 0, all.size()}, all, until);
    return {};
}

// If rank 0 has failed, its message explains more than an unsuccessful send.
Status StarBootstrap::ask_rank_0(Type call, std::span<const std::byte> send, Bytes& all) {
    const auto until = deadline_of_call();
    (void)this->send(links_[0], {call, 0, send.size()}, send, until);
    auto answer = receive(0, until);
    if (!answer.ok()) return answer.status();
    if (answer.value().header.type != Type::result) return failure_in(answer.value());
    all = std::move(answer.value().payload);
    return {};
}

Status StarBootstrap::deliver(const Bytes& all, std::span<std::byte> receive) {
    if (is(StarDefect::sizes_unchecked)) {
        if (!all.empty()) std::memcpy(receive.data(), all.data(), all.size());
        return {};
    }
    if (all.size() != receive.size() && !is(StarDefect::sizes_truncated))
        return {Code::mismatch, "the ranks gave different numbers of bytes"};
    std::copy_n(all.begin(), std::min(all.size(), receive.size()), receive.begin());
    return {};
}

void StarBootstrap::abort(const std::string& reason) {
    const bool said = !is(StarDefect::abort_without_reason);
    const bool limited = !is(StarDefect::long_reason_rejected);
    const std::string text = limited ? reason.substr(0, max_reason_bytes) : reason;
    const Status cause{Code::aborted, rank_text(rank_) + " aborted the job" + (said ? ": " + text : "")};
    if (is(StarDefect::abort_not_reported))
        failure_ = cause;
    else
        (void)fail(cause);
    if (is(StarDefect::usable_after_abort)) failure_ = {};
}

Status StarBootstrap::check() {
    if (is(StarDefect::check_sees_nothing)) return {};
    if (!failure_.ok()) return failure_;
    for (int rank = 0; rank < nranks_; ++rank) {
        const int link = links_[static_cast<std::size_t>(rank)];
        if (link < 0) continue;
        Header header{};
        const int flags = MSG_PEEK | (is(StarDefect::check_waits) ? 0 : MSG_DONTWAIT);
        const auto got = ::recv(link, &header, sizeof header, flags);
        const bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
        if (gone) return fail({Code::peer_dead, rank_text(rank) + " has left the job"});
        if (got != sizeof header || header.type != Type::failure) continue;
        const auto message = receive(rank, deadline_of_call());
        return fail(message.ok() ? failure_in(message.value()) : message.status());
    }
    return {};
}

Status StarBootstrap::failure_in(const Message& message) const {
    if (message.header.type != Type::failure) return {Code::protocol, "a message that does not belong to this call"};
    const auto* const text = reinterpret_cast<const char*>(message.payload.data());
    return {static_cast<Code>(message.header.number), std::string(text, message.payload.size())};
}

Status StarBootstrap::fail(Status cause) {
    if (!failure_.ok()) return failure_;
    failure_ = std::move(cause);
    broadcast_failure();
    return failure_;
}

void StarBootstrap::broadcast_failure() {
    const auto& text = failure_.message();
    for (const int link : links_)
        if (link >= 0)
            (void)send(link, {Type::failure, static_cast<std::int32_t>(failure_.code()), text.size()},
                       std::as_bytes(std::span(text)), Clock::now() + std::chrono::milliseconds(500));
}

// Stops when the other side has something to say: in a call, that can only be a failure.
Status StarBootstrap::send(int link, const Header& header, std::span<const std::byte> payload, Moment until) {
    const auto head = std::as_bytes(std::span(&header, 1));
    Bytes all(head.begin(), head.end());
    all.insert(all.end(), payload.begin(), payload.end());
    std::span<const std::byte> rest(all);
    while (!rest.empty()) {
        const auto sent = ::send(link, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return system_failure("send");
        rest = rest.subspan(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
        pollfd room{link, static_cast<short>(POLLOUT | (rank_ == 0 ? 0 : POLLIN)), 0};
        if (!rest.empty() && ::poll(&room, 1, milliseconds_until(until)) == 0)
            return {Code::timeout, rank_text(rank_) + " could not send in time"};
        if (!rest.empty() && (room.revents & POLLIN) != 0) return {Code::aborted, "the other side has failed"};
    }
    return {};
}

Result<StarBootstrap::Message> StarBootstrap::receive(int rank, Moment until) {
    Message message{};
    if (Status got = read_exactly(rank, std::as_writable_bytes(std::span(&message.header, 1)), until); !got.ok())
        return got;
    const bool failure = message.header.type == Type::failure;
    if (failure && is(StarDefect::long_reason_rejected) && message.header.bytes > short_message_bytes)
        return Status{Code::protocol, rank_text(rank) + " sent a message that is too long"};
    message.payload.resize(message.header.bytes);
    if (Status got = read_exactly(rank, message.payload, until); !got.ok()) return got;
    return message;
}

Status StarBootstrap::read_exactly(int rank, std::span<std::byte> into, Moment until) {
    while (!into.empty()) {
        const auto ready = await_input({rank}, -1, until);
        if (!ready.ok()) return ready.status();
        const auto got = ::recv(links_[static_cast<std::size_t>(rank)], into.data(), into.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return {Code::peer_dead, rank_text(rank) + " has left the job"};
        into = into.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Result<int> StarBootstrap::await_input(const std::vector<int>& ranks, int listener, Moment until) {
    std::vector<pollfd> polled{{listener, POLLIN, 0}};
    for (const int rank : ranks) polled.push_back({links_[static_cast<std::size_t>(rank)], POLLIN, 0});
    for (;;) {
        const int limit = is(StarDefect::dead_rank_unnoticed) ? -1 : milliseconds_until(until);
        const int ready = ::poll(polled.data(), polled.size(), limit);
        if (ready == 0) return Status{Code::timeout, rank_text(rank_) + " waited too long for other ranks"};
        if (polled[0].revents != 0) return listener_number;
        for (std::size_t i = 0; i < ranks.size() && ready > 0; ++i) {
            if (polled[i + 1].revents == 0) continue;
            char next = 0;
            const bool gone = ::recv(polled[i + 1].fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
            if (!gone || !is(StarDefect::dead_rank_unnoticed)) return ranks[i];
            polled[i + 1].fd = -1;  // waits on without it
        }
    }
}

}  // namespace npushmem::contract
