// SPDX-License-Identifier: BSD-3-Clause
#include "mine_bootstrap.hpp"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace mine_plugin {

using npushmem::Bootstrap;
using npushmem::Host;

namespace {

constexpr int max_ranks = 1 << 16;
// The hub reports a time-out with the missing ranks; a rank gives it so much longer.
constexpr Milliseconds hub_grace{2000};
// Between two attempts to connect to a rank 0 that does not listen yet.
constexpr int retry_ms = 5;
// As a rank or a number of ranks.
constexpr int not_given = -1;

// The program's number, else the variable's.
Result<int> read_number(const Host& host, const char* name, int given) {
    if (given != not_given) return given;
    const std::string text = host.config(name);
    if (text.empty()) return not_given;
    int out = -1;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
    if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && out >= not_given) return out;
    return Status{Code::config, "NPUSHMEM_" + std::string(name) + "='" + text +
                                    "': expected a whole number from 0, or -1: not given"};
}

// "250ms", "2.5s", "2m"; seconds without a unit.
Result<Milliseconds> read_duration(const Host& host, const npushmem_config_row& row) {
    const std::string text = host.config(row.name, row.default_value);
    double number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit = std::string_view(text).substr(static_cast<std::size_t>(parsed.ptr - text.data()));
    const double factor = unit.empty() || unit == "s" ? 1e3 : unit == "ms" ? 1 : unit == "m" ? 6e4 : 0;
    if (parsed.ec == std::errc{} && number * factor >= 1 && number * factor < 1e9)
        return Milliseconds(static_cast<std::int64_t>(number * factor));
    return Status{Code::config, "NPUSHMEM_" + std::string(row.name) + "='" + text +
                                    "': expected a duration of 1 ms to 10 days, such as 250ms, 2.5s or 2m"};
}

std::string hexadecimal(std::span<const std::byte> bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const std::byte byte : bytes) {
        out += digits[std::to_integer<unsigned>(byte) >> 4U];
        out += digits[std::to_integer<unsigned>(byte) & 15U];
    }
    return out;
}

// An id: the magic, random bytes, and the checksum of the plugin's name and of the bytes before. The checksum detects
// damage and ids of other bootstraps. It is no signature.
using Id = std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES>;
constexpr std::string_view id_magic = "NPUSHBID";
constexpr std::size_t checked_bytes = NPUSHMEM_UNIQUEID_BYTES - sizeof(std::uint64_t);

constexpr std::uint64_t hash_start = 0xcbf29ce484222325;

// FNV-1a. `hash` is that of the bytes before.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t hash = hash_start) {
    for (const std::byte each : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3;
    return hash;
}

std::uint64_t id_checksum(Id id) {
    constexpr std::string_view plugin = "mine";
    return hash_of(id.first(checked_bytes), hash_of(std::as_bytes(std::span(plugin))));
}

// Returns why the bytes are no id of get_uniqueid; empty if they are one.
std::string defect_of(Id id) {
    if (std::memcmp(id.data(), id_magic.data(), id_magic.size()) != 0)
        return "it begins with " + hexadecimal(id.first(id_magic.size())) + " instead of " +
               hexadecimal(std::as_bytes(std::span(id_magic)));
    std::uint64_t stored = 0;
    std::memcpy(&stored, id.data() + checked_bytes, sizeof stored);
    return stored == id_checksum(id) ? "" : "its checksum is wrong";
}

// As defect_of, for the hexadecimal digits of an id.
std::string defect_of_digits(const std::string& text) {
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id{};
    if (text.size() != 2 * id.size()) return "it has " + std::to_string(text.size()) + " characters";
    for (std::size_t i = 0; i < id.size(); ++i) {
        const char* const digits = text.data() + 2 * i;
        unsigned value = 0;
        if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
            return "characters " + std::to_string(2 * i + 1) + " and " + std::to_string(2 * i + 2) +
                   " are no hexadecimal digits";
        id[i] = static_cast<std::byte>(value);
    }
    return defect_of(id);
}

// Finds the text that the ranks of the job have in common: the digits of the program's id, else NPUSHMEM_UNIQUEID, else
// the session; "" without any. Messages have the start of an id only, because an id is a secret of the job.
Result<std::string> find_common_text(const Host& host, const npushmem_bootstrap_params& params) {
    if (params.uniqueid != nullptr) {
        const Id id(static_cast<const std::byte*>(params.uniqueid), NPUSHMEM_UNIQUEID_BYTES);
        const std::string defect = defect_of(id);
        if (defect.empty()) return hexadecimal(id);
        return Status{Code::argument, "cannot join the job: the given id is no unique id of the bootstrap mine: " +
                                          defect + "; pass all " + std::to_string(NPUSHMEM_UNIQUEID_BYTES) +
                                          " bytes of this bootstrap's get_uniqueid unchanged to every rank"};
    }
    std::string digits = host.config("UNIQUEID");
    if (digits.empty()) return host.config("MINE_SESSION");
    const std::string defect = defect_of_digits(digits);
    if (defect.empty()) return digits;
    const std::string start = digits.size() > 16 ? digits.substr(0, 16) + "..." : digits;
    return Status{Code::config,
                  "cannot join the job: NPUSHMEM_UNIQUEID='" + start + "' is no unique id of the bootstrap mine: " +
                      defect + "; expected the " + std::to_string(2 * NPUSHMEM_UNIQUEID_BYTES) +
                      " hexadecimal digits of this bootstrap's get_uniqueid. npushmem-run sets an id of the bootstrap "
                      "uid unless it is started with NPUSHMEM_BOOTSTRAP=mine: set that and NPUSHMEM_MINE_SESSION"};
}

// The name of the job's socket, or "" for a process that nothing describes. It has the first characters of the text,
// and a hash of all of them, because a name is shorter than an id.
Result<std::string> socket_name(const Host& host, const npushmem_bootstrap_params& params) {
    const auto text = find_common_text(host, params);
    if (!text.ok() || text.value().empty()) return text;
    const std::uint64_t hash = hash_of(std::as_bytes(std::span(text.value())));
    return "npushmem-mine-" + std::to_string(::geteuid()) + "-" + std::to_string(hash) + "-" +
           text.value().substr(0, 48);
}

Status check_place(int rank, int nranks) {
    if (nranks < 1 || nranks > max_ranks || rank < 0 || rank >= nranks)
        return {Code::range, "cannot join the job as rank " + std::to_string(rank) + " of " + std::to_string(nranks) +
                                 " ranks (-1: not given): ranks count from 0, and a job has 1 to " +
                                 std::to_string(max_ranks) +
                                 " ranks; set NPUSHMEM_PE and NPUSHMEM_NPES, or start the program with npushmem-run"};
    return {};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> MineBootstrap::open(const Host& host, const npushmem_bootstrap_params& params) {
    const auto rank = read_number(host, "PE", params.rank);
    if (!rank.ok()) return rank.status();
    const auto nranks = read_number(host, "NPES", params.nranks);
    if (!nranks.ok()) return nranks.status();
    const auto timeout = read_duration(host, config_rows[1]);
    if (!timeout.ok()) return timeout.status();
    const auto name = socket_name(host, params);
    if (!name.ok()) return name.status();
    // Nobody else can be in a job of one rank, nor in one that nothing describes.
    const bool undescribed = name.value().empty() && nranks.value() == not_given && rank.value() <= 0;
    const int count = undescribed ? 1 : nranks.value();
    const int number = count == 1 && rank.value() == not_given ? 0 : rank.value();
    if (Status sound = check_place(number, count); !sound.ok()) return sound;
    std::unique_ptr<MineBootstrap> out(new MineBootstrap(number, count, timeout.value()));
    if (count == 1) return std::unique_ptr<Bootstrap>(std::move(out));
    if (name.value().empty())
        return Status{Code::config, "rank " + std::to_string(number) + " of " + std::to_string(count) +
                                        " has neither a unique id nor a session: set NPUSHMEM_MINE_SESSION"};
    if (Status joined = out->join(name.value()); !joined.ok()) return joined;
    return std::unique_ptr<Bootstrap>(std::move(out));
}

// The ranks derive the same name from the random bytes, and rank 0 listens there in `open`.
Status MineBootstrap::get_uniqueid(const Host& /*host*/, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    std::memcpy(id.data(), id_magic.data(), id_magic.size());
    const auto random = id.first(checked_bytes).subspan(id_magic.size());
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        return system_failure("cannot get random bytes for a unique id");
    const std::uint64_t checksum = id_checksum(id);
    std::memcpy(id.data() + checked_bytes, &checksum, sizeof checksum);
    return {};
}

int MineBootstrap::recognise(const Host& host, const npushmem_bootstrap_params& /*params*/, std::string& why) {
    if (host.config("MINE_SESSION").empty()) return 0;
    why = "NPUSHMEM_MINE_SESSION is set";
    return NPUSHMEM_RECOGNISED_BY_USER;
}

MineBootstrap::~MineBootstrap() {
    if (channel_.is_open()) {
        Header bye;
        bye.kind = Kind::bye;
        (void)channel_.send(bye, {}, Clock::now() + hub_grace);
    }
    channel_ = Channel();  // the hub ends when rank 0's channel does
    hub_.reset();
}

// A connection to the hub of an earlier job of this name ends before the answer; then rank 0 listens again soon.
Status MineBootstrap::join(const std::string& name) {
    const Clock::time_point deadline = Clock::now() + timeout_ + hub_grace;
    for (;;) {
        Status joined = join_once(name, deadline);
        const bool may_come = joined.code() == Code::unreachable && rank_ != 0;
        if (!may_come) return joined;
        if (Clock::now() >= deadline)
            return {Code::timeout, "rank " + std::to_string(rank_) + " found no rank 0 within " +
                                       std::to_string(timeout_.count()) + " ms: " + joined.message()};
        (void)::poll(nullptr, 0, retry_ms);
    }
}

Status MineBootstrap::join_once(const std::string& name, Clock::time_point deadline) {
    if (rank_ == 0) {
        auto listener = Channel::listen(name);
        if (!listener.ok()) return listener.status();
        auto ends = Channel::pair();
        if (!ends.ok()) return ends.status();
        channel_ = std::move(ends.value().first);
        hub_ = std::make_unique<Hub>(std::move(listener).value(), std::move(ends.value().second), nranks_, timeout_);
    } else {
        auto connected = Channel::connect(name);
        if (!connected.ok()) return connected.status();
        channel_ = std::move(connected).value();
    }
    Header hello;
    hello.kind = Kind::hello;
    hello.rank = rank_;
    hello.bytes = static_cast<std::uint64_t>(nranks_);
    Message answer;
    const bool sent = channel_.send(hello, {}, deadline);
    while (sent && channel_.wait_readable(deadline)) {
        const Channel::Received received = channel_.receive(answer);
        if (received == Channel::Received::partial) continue;
        if (received != Channel::Received::complete) break;
        if (answer.header.kind == Kind::hello) return {};
        if (answer.header.kind == Kind::failure) return failed_by(answer);
        break;
    }
    channel_ = Channel();
    return {Code::unreachable, "rank 0 closed the connection at @" + name + ", or did not answer"};
}

Status MineBootstrap::failed(Code code, const std::string& message) {
    if (failure_.ok()) failure_ = {code, message};
    return failure_;
}

Status MineBootstrap::failed_by(const Message& message) {
    const std::string cause(reinterpret_cast<const char*>(message.payload.data()), message.payload.size());
    return failed(static_cast<Code>(message.header.code), cause);
}

Status MineBootstrap::receive_answer(Kind kind, Message& answer, Clock::time_point deadline) {
    for (;;) {
        switch (channel_.receive(answer)) {
            case Channel::Received::complete:
                if (answer.header.kind == kind) return {};
                if (answer.header.kind == Kind::failure) return failed_by(answer);
                if (answer.header.kind == Kind::bye) return failed(Code::peer_dead, "rank 0 has left the job");
                return failed(Code::protocol, "rank 0 answered another call than this");
            case Channel::Received::closed: return failed(Code::peer_dead, "rank 0 has ended without leaving the job");
            case Channel::Received::malformed: return failed(Code::protocol, "rank 0 sent a malformed message");
            case Channel::Received::partial: break;
        }
        if (!channel_.wait_readable(deadline))
            return failed(Code::timeout, "rank 0 did not answer within " + std::to_string(timeout_.count()) + " ms");
    }
}

Status MineBootstrap::call(Kind kind, std::span<const std::byte> part, Message& answer) {
    if (!failure_.ok()) return failure_;
    if (hub_left_) return failed(Code::peer_dead, "rank 0 has left the job");
    const Clock::time_point deadline = Clock::now() + timeout_ + hub_grace;
    Header header;
    header.kind = kind;
    header.rank = rank_;
    // If it cannot be sent, the hub has ended, and the cause is among what it has sent before.
    (void)channel_.send(header, part, deadline);
    return receive_answer(kind, answer, deadline);
}

Status MineBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    if (send.size() > max_part)
        return {Code::range, "allgather of " + std::to_string(send.size()) + " bytes per rank exceeds the limit of " +
                                 std::to_string(max_part)};
    if (nranks_ == 1) {
        if (!send.empty()) std::memmove(receive.data(), send.data(), send.size());
        return failure_;
    }
    Message all;
    if (Status called = call(Kind::gather, send, all); !called.ok()) return called;
    if (all.payload.size() != receive.size())
        return failed(Code::protocol, "rank 0 sent " + std::to_string(all.payload.size()) + " bytes of " +
                                          std::to_string(receive.size()));
    if (!receive.empty()) std::memcpy(receive.data(), all.payload.data(), receive.size());
    return {};
}

Status MineBootstrap::barrier() {
    if (nranks_ == 1) return failure_;
    Message answer;
    return call(Kind::barrier, {}, answer);
}

void MineBootstrap::abort(const std::string& reason) {
    if (!failure_.ok()) return;
    Header header;
    header.kind = Kind::abort;
    if (channel_.is_open()) (void)channel_.send(header, std::as_bytes(std::span(reason)), Clock::now() + hub_grace);
    (void)failed(Code::aborted, "this rank aborted the job: " + reason);
}

// Between two calls the hub sends nothing but a failure, or a bye, which is no failure by itself.
Status MineBootstrap::check() {
    if (!failure_.ok() || nranks_ == 1 || hub_left_) return failure_;
    Message message;
    switch (channel_.receive(message)) {
        case Channel::Received::partial: return {};
        case Channel::Received::closed: return failed(Code::peer_dead, "rank 0 has ended without leaving the job");
        case Channel::Received::malformed: return failed(Code::protocol, "rank 0 sent a malformed message");
        case Channel::Received::complete: break;
    }
    if (message.header.kind == Kind::failure) return failed_by(message);
    // The next call fails; until then all is well.
    hub_left_ = hub_left_ || message.header.kind == Kind::bye;
    return {};
}

}  // namespace mine_plugin
