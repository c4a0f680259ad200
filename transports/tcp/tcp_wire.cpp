// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/tcp_wire.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/base/liveness.hpp"

namespace npushmem::tcp {

using network::LaneId;
using network::RemoteAddress;
using network::WireContext;

namespace {

constexpr std::size_t scratch_bytes = std::size_t{256} << 10;
// Writes up to this size need no source after they are posted.
constexpr std::size_t inject_bytes = 4096;
// A foreign process may connect and send nothing: so many such connections fit beside those of all peers. Then the old
// ones are closed, and others wait in the kernel's queue.
constexpr std::size_t max_foreign = 256;
constexpr std::chrono::seconds max_silence{30};
constexpr std::chrono::seconds max_deferral{1};
constexpr std::uint64_t listener_key = 0;  // of the poller; other keys are addresses of connections
constexpr std::uint64_t timer_key = 1;
constexpr std::chrono::microseconds max_batch_delay{200};  // of the timer; another 100 us if a burst moves it
// The caller makes progress before it posts more: operations that have ended keep memory until then.
constexpr std::size_t max_completions = 4096;

std::uint64_t key_of(const Connection& connection) { return reinterpret_cast<std::uintptr_t>(&connection); }

// The user decides how long a peer may be silent. The kernel's probes of idle connections would end those of a job, if
// a busy host loses some.
void disable_time_limits(const Socket& socket) {
    const int none = 0;
    (void)::setsockopt(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
    (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &none, sizeof none);
}

FrameHeader header_of(FrameKind kind, const RemoteAddress& place, std::uint64_t bytes) {
    FrameHeader out;
    out.kind = kind;
    out.bytes = bytes;
    out.region = place.key;
    out.offset = place.offset;
    return out;
}

std::span<const std::byte> data_of(const void* from, std::uint64_t bytes) {
    return {static_cast<const std::byte*>(from), bytes};
}

}  // namespace

TcpWire::TcpWire(int my_pe, int npes, std::uint32_t lanes, std::chrono::microseconds max_gap)
    : my_pe_(my_pe),
      peers_(static_cast<std::size_t>(npes)),
      max_unknown_(static_cast<std::size_t>(npes) * lanes + max_foreign),
      max_gap_(max_gap) {}

Result<std::unique_ptr<network::Wire>> TcpWire::open(const Address& where, int my_pe, int npes, std::uint32_t lanes,
                                                     std::chrono::microseconds max_gap) {
    std::unique_ptr<TcpWire> wire(new TcpWire(my_pe, npes, lanes, max_gap));
    if (Status s = wire->listen(where); !s.ok()) return s;
    return std::unique_ptr<network::Wire>(std::move(wire));
}

Status TcpWire::listen(const Address& where) {
    (void)ensure_file_limit(2 * max_unknown_);  // both PEs may connect a lane at once; and the program's own files
    if (Status s = fill_random(secret_); !s.ok()) return s;
    auto poller = Poller::open();
    if (!poller.ok()) return poller.status();
    poller_ = std::move(poller).value();
    auto socket = Socket::listen(where);
    if (!socket.ok()) return socket.status();
    listener_socket_ = std::move(socket).value();
    listening_at_ = listener_socket_.local_address();
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes);
    traits_.name = "tcp on " + listening_at_.host_text();
    traits_.protocol = fmt::format("tcp {}", Handshake::version_value);
    traits_.delivery = network::Delivery::in_order;
    traits_.inject_bytes = inject_bytes;
    traits_.message_bytes = max_message_bytes;
    traits_.signals = 1U << NPUSHMEM_SIGNAL_SET;
    traits_.messages_in_order = true;
    traits_.arrives_in_progress = true;
    traits_.latency_ns = network::tcp_latency_ns;
    traits_.bytes_per_second = network::tcp_bytes_per_second;
    if (max_gap_.count() != 0) {
        auto timer = WakeTimer::make();
        if (!timer.ok()) return timer.status();
        timer_ = std::move(timer).value();
        if (Status s = poller_.watch(timer_->descriptor(), timer_key); !s.ok()) return s;
    }
    return poller_.watch(listener_socket_.fd(), listener_key);
}

TcpWire::~TcpWire() {
    while (!connections_.empty()) {
        Connection& last = *connections_.back();
        last.send_goodbye();
        last.close({});
    }
}

Result<Bytes> TcpWire::address() {
    ByteWriter out;
    listening_at_.encode(out);
    return out.bytes(secret_).take();
}

Result<TcpWire::PeerAddress> TcpWire::decode(int pe, std::span<const std::byte> address) {
    PeerAddress out;
    ByteReader in(address);
    out.address = Address::decode(in);
    in.bytes(out.secret);
    const bool whole = in.ok() && address.size() == Address::encoded_bytes + out.secret.size();
    if (whole && out.address.given() && out.address.port() != 0) return out;
    return Status{Code::protocol,
                  fmt::format("PE {} sent {} bytes, which are not an address of tcp", pe, address.size())};
}

Result<std::string> TcpWire::route_to(int pe, std::span<const std::byte> address) {
    const auto decoded = decode(pe, address);
    if (!decoded.ok()) return decoded.status();
    const Address& there = decoded.value().address;
    const std::string route = fmt::format("{} -> {}", listening_at_.host_text(), there.host_text());
    if (there.family() != listening_at_.family())
        return Status{Code::unreachable,
                      fmt::format("{} are addresses of different families: set NPUSHMEM_TCP_FAMILY", route)};
    if (there.is_loopback() != listening_at_.is_loopback())
        return Status{
            Code::unreachable,
            fmt::format("only one of {} is an address of the loopback interface: set NPUSHMEM_TCP_IFNAME", route)};
    return "tcp " + route;
}

Status TcpWire::add_peer(int pe, std::span<const std::byte> address) {
    auto decoded = decode(pe, address);
    if (!decoded.ok()) return decoded.status();
    PeerAddress& there = decoded.value();
    there.address = there.address.over_interface_of(listening_at_);
    peer(pe).address = std::move(there);
    return {};
}

Result<network::WireMemory> TcpWire::register_memory(void* base, std::uint64_t bytes) {
    network::WireMemory out;
    out.number = regions_.insert({static_cast<std::byte*>(base), bytes, 0});
    ByteWriter key;
    out.key = key.integer(out.number).take();
    return out;
}

void TcpWire::deregister_memory(std::uint64_t number) {
    regions_.erase(number);
    for (Connection* each : open_connections(-1)) {
        each->leave_region(number);
        update_interest(*each);
    }
}

Result<std::uint64_t> TcpWire::import_key(int pe, std::span<const std::byte> key) {
    if (key.size() != sizeof(std::uint64_t))
        return Status{Code::protocol, fmt::format("the key of memory of PE {} has {} bytes, expected {}", pe,
                                                  key.size(), sizeof(std::uint64_t))};
    return ByteReader(key).integer<std::uint64_t>();
}

Connection* TcpWire::outgoing(LaneId lane_id, Code& code) {
    code = Code::again;
    const auto ended = [lane_id](const Loss& loss) { return loss.lane_id == lane_id; };
    if (std::ranges::any_of(losses_, ended)) return nullptr;  // which is reported soon
    std::vector<Connection*>& lanes = peer(lane_id.pe).lanes;
    if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
    Connection*& connection = lanes[lane_id.lane];
    if (connection == nullptr) connection = opened_by_peer(lane_id);
    if (connection == nullptr)
        if (const Code connected = connect(lane_id); connected != Code::ok) return code = connected, nullptr;
    return connection->has_room() && completions_.size() < max_completions ? connection : nullptr;
}

Connection* TcpWire::opened_by_peer(LaneId lane_id) const {
    const Peer& there = peers_[static_cast<std::size_t>(lane_id.pe)];
    if (!is_shared(lane_id) || !there.address || there.opened == nullptr || !there.opened->is_usable()) return nullptr;
    return equal_in_constant_time(there.opened_by, there.address->secret) ? there.opened : nullptr;
}

Connection* TcpWire::connection_of(LaneId lane_id) const {
    if (lane_id.pe < 0) return nullptr;
    const std::vector<Connection*>& lanes = peers_[static_cast<std::size_t>(lane_id.pe)].lanes;
    return lane_id.lane < lanes.size() ? lanes[lane_id.lane] : nullptr;
}

std::vector<Connection*> TcpWire::open_connections(int pe) {
    std::vector<Connection*> open;
    for (const Owned& each : connections_)
        if (pe < 0 || each->lane_id().pe == pe) open.push_back(each.get());
    return open;
}

Code TcpWire::connect(LaneId lane_id) {
    Peer& there = peer(lane_id.pe);
    if (!there.address) return last_error_ = "the peer has not been added", Code::state;
    auto socket = Socket::connect(there.address->address);
    if (!socket.ok()) return last_error_ = socket.status().message(), socket.status().code();
    disable_time_limits(socket.value());
    auto made = std::make_unique<Connection>(static_cast<ConnectionOwner&>(*this), Connection::Direction::outgoing,
                                             std::move(socket).value(), lane_id);
    Handshake handshake;
    handshake.pe = my_pe_;
    handshake.lane = lane_id.lane;
    handshake.secret = there.address->secret;
    handshake.sender_secret = secret_;
    made->set_handshake(handshake);
    (void)made->take_change_of_events();
    Status watched = poller_.watch(made->socket().fd(), key_of(*made), made->events());
    if (!watched.ok()) return last_error_ = watched.message(), watched.code();
    there.lanes[lane_id.lane] = made.get();
    connections_.push_back(std::move(made));
    return Code::ok;
}

// Frames that found no room wait for the socket.
void TcpWire::update_interest(Connection& connection) {
    if (connection.is_open() && connection.take_change_of_events())
        poller_.modify(connection.socket().fd(), key_of(connection), connection.events());
}

// `post_frame` returns false if the connection has ended, which is reported soon.
template <class PostFrame>
Code TcpWire::post(LaneId lane_id, PostFrame&& post_frame) {
    Code code{};
    Connection* const over = outgoing(lane_id, code);
    if (over == nullptr) return code;
    if (!post_frame(*over)) return Code::again;
    update_interest(*over);
    return Code::ok;
}

Code TcpWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    return post(to.lane_id, [&](Connection& over) {
        return over.write(header_of(FrameKind::write, to, bytes), nullptr, data_of(from, bytes), bytes <= inject_bytes,
                          context);
    });
}

Code TcpWire::write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes, const RemoteAddress& at,
                           std::uint64_t signal, WireContext& context) {
    const FrameSignal then{at.key, at.offset, signal};
    return post(to.lane_id, [&](Connection& over) {
        return over.write(header_of(FrameKind::write_signal, to, bytes), &then, data_of(from, bytes),
                          bytes <= inject_bytes, context);
    });
}

Code TcpWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    return post(from.lane_id,
                [&](Connection& over) { return over.read(header_of(FrameKind::read, from, bytes), to, context); });
}

Code TcpWire::send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (head.size() + rest.size() > max_message_bytes) return Code::argument;
    return post(lane_id, [&](Connection& over) { return over.send_message(head, rest); });
}

bool TcpWire::has_unsent_messages() const {
    return std::ranges::any_of(peers_, [](const Peer& each) {
        return std::ranges::any_of(each.lanes,
                                   [](const Connection* over) { return over && over->has_unsent_operations(); });
    });
}

void TcpWire::forget(int pe) {
    const Connection::End end{Code::peer_dead, "the peer is no longer used", false, false};
    peer(pe).forgotten = true;
    for (Connection* each : open_connections(pe)) each->close(end);
    drop_losses([pe](const Loss& loss) { return loss.lane_id.pe == pe; });
}

void TcpWire::close(LaneId lane_id) {
    if (Connection* const connection = connection_of(lane_id); connection != nullptr)
        connection->close({Code::system, "the lane is closed", false, false});
    drop_losses([lane_id](const Loss& loss) { return loss.lane_id == lane_id; });
}

// Their operations end without a report of the loss.
template <class Wanted>
void TcpWire::drop_losses(const Wanted& wanted) {
    for (const Loss& loss : losses_)
        if (wanted(loss))
            for (WireContext* context : loss.unfinished) completed(*context, loss.end.code, loss.end.why);
    std::erase_if(losses_, wanted);
}

// Closing alone does not remove the socket from the poller while a child of this process has it, too.
void TcpWire::ended(Connection& connection, const Socket& socket) {
    const LaneId lane_id = connection.lane_id();
    poller_.remove(socket.fd());
    if (last_receiver_ == &connection) last_receiver_ = nullptr;
    std::erase(batching_, &connection);
    if (lane_id.pe >= 0 && peer(lane_id.pe).opened == &connection) peer(lane_id.pe).opened = nullptr;
    if (lane_id.pe < 0) --unknown_;
    if (connection_of(lane_id) == &connection) {
        peer(lane_id.pe).lanes[lane_id.lane] = nullptr;
        losses_.push_back(
            {lane_id, connection.end(), connection.take_unfinished(), round_, Clock::now() + max_deferral});
    }
    const auto found = std::ranges::find(connections_, &connection, &Owned::get);
    ended_.push_back(std::move(*found));
    connections_.erase(found);
}

// If both PEs have connected lane 0 at the same time, they use the connection of the lower PE: that one leaves the
// other connection without a welcome, and the higher PE closes it as soon as it receives the handshake of the lower
// one.
void TcpWire::handshake_received(Connection& connection, const Handshake& handshake) {
    const bool known = handshake.magic == Handshake::magic_value && handshake.version == Handshake::version_value &&
                       equal_in_constant_time(handshake.secret, secret_) && handshake.pe >= 0 &&
                       static_cast<std::size_t>(handshake.pe) < peers_.size();
    if (!known) {
        listener_->arrived(std::as_bytes(std::span(&handshake, 1)));  // unsigned bytes, which are counted
        connection.close({});
        return;
    }
    if (peer(handshake.pe).forgotten) return connection.close({});
    const LaneId lane_id{handshake.pe, handshake.lane};
    connection.set_lane_id(lane_id);
    --unknown_;
    if (!is_shared(lane_id)) return connection.welcome();
    Peer& there = peer(lane_id.pe);
    Connection* const own = connection_of(lane_id);
    const bool both = own != nullptr && !own->is_welcomed();
    if (both && my_pe_ < lane_id.pe) return;
    connection.welcome();
    if (!connection.is_open()) return;
    there.opened = &connection;
    there.opened_by = handshake.sender_secret;
    if (!both || opened_by_peer(lane_id) == nullptr) return;
    there.lanes.front() = &connection;
    connection.take_operations(*own);
    own->close({});
}

bool TcpWire::accept_all() {
    constexpr int at_once = 64;  // foreign processes may connect without end
    bool happened = false;
    for (int i = 0; i < at_once; ++i) {
        int error = 0;
        const bool room = has_room_for_unknown();
        Socket socket = room ? listener_socket_.accept(error) : Socket();
        if (!socket.valid()) {
            // Connections without room or a descriptor stay in the kernel's queue: the poller would report them at
            // once.
            accepts_ = room && (error == EAGAIN || error == EWOULDBLOCK || error == ECONNABORTED);
            poller_.modify(listener_socket_.fd(), listener_key, accepts_ ? std::uint32_t{EPOLLIN} : 0U);
            return happened;
        }
        happened = true;
        disable_time_limits(socket);
        connections_.push_back(std::make_unique<Connection>(
            static_cast<ConnectionOwner&>(*this), Connection::Direction::incoming, std::move(socket), LaneId{}));
        ++unknown_;
        Connection& made = *connections_.back();
        (void)made.take_change_of_events();
        if (Status watched = poller_.watch(made.socket().fd(), key_of(made), made.events()); !watched.ok()) {
            made.close({});
            continue;
        }
        (void)receive(made);  // its handshake
    }
    return happened;
}

bool TcpWire::has_room_for_unknown() {
    if (unknown_ < max_unknown_) return true;
    std::vector<Connection*> old;
    const auto now = Clock::now();
    for (const Owned& each : connections_)
        if (each->lane_id().pe < 0 && now - each->begin() > max_silence) old.push_back(each.get());
    for (Connection* each : old) each->close({});
    return unknown_ < max_unknown_;
}

bool TcpWire::serve(const Poller::Event& event) {
    if (event.key == listener_key) return accept_all();
    if (event.key == timer_key) return timer_->clear(), false;  // progress() has sent the batches
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as given to the poller
    Connection& connection = *reinterpret_cast<Connection*>(event.key);
    bool happened = false;
    if ((event.writable() || (event.events & EPOLLERR) != 0) && connection.must_write()) happened = connection.flush();
    if (event.readable() && connection.is_open()) return receive(connection) || happened;
    update_interest(connection);
    return happened;
}

bool TcpWire::receive(Connection& connection) {
    const bool happened = connection.receive({scratch_.get(), scratch_bytes});
    if (happened && connection.is_open()) {
        calls_per_poll_ = last_receiver_ == &connection ? 4 : 2;
        last_receiver_ = &connection;
    }
    update_interest(connection);
    return happened;
}

// Without a later call of the PE, the timer wakes the progress thread, which calls progress(). A burst moves the timer,
// so that it does not wake the thread, but not where an older batch waits for it.
void TcpWire::batch_begins(Connection& connection) {
    const auto now = Clock::now();
    const auto is_older = [&](const Connection* each) { return each->has_batch_before(now - max_batch_delay / 2); };
    if (timer_at_ < now + max_batch_delay / 2 && std::ranges::none_of(batching_, is_older)) {
        timer_at_ = now + max_batch_delay;
        timer_->set(timer_at_.time_since_epoch());
    }
    if (std::ranges::find(batching_, &connection) == batching_.end()) batching_.push_back(&connection);
}

void TcpWire::send_batches() {
    if (batching_.empty()) return;
    for (Connection* each : std::exchange(batching_, {})) {
        each->send_batch();
        update_interest(*each);
    }
}

bool TcpWire::progress(network::WireListener& listener) {
    listener_ = &listener;
    ++progress_calls_;
    send_batches();
    bool happened = false;
    if (last_receiver_ != nullptr && !last_receiver_->must_write() && progress_calls_ % calls_per_poll_ != 0) {
        happened = receive(*last_receiver_);
    } else {
        ++round_;
        for (const Poller::Event& event : poller_.wait(0)) happened = serve(event) || happened;
    }
    if (!accepts_) happened = accept_all() || happened;
    send_batches();  // of messages that handlers have sent
    happened = report(listener) || happened;
    ended_.clear();
    listener_ = nullptr;
    return happened;
}

std::vector<TcpWire::Loss>::iterator TcpWire::next_loss() {
    return std::ranges::find_if(losses_, [this](const Loss& each) { return can_report(each); });
}

// The listener's calls may add completions and losses, and remove losses.
bool TcpWire::report(network::WireListener& listener) {
    bool happened = false;
    for (const Completion& each : std::exchange(completions_, {})) {
        listener.completed(*each.context, each.code, each.why);
        happened = true;
    }
    for (auto next = next_loss(); next != losses_.end(); next = next_loss()) {
        const Loss loss = std::move(*next);
        losses_.erase(next);
        happened = true;
        if (loss.end.normal && loss.unfinished.empty()) {
            listener.closed(loss.lane_id.pe);
            continue;
        }
        for (WireContext* context : loss.unfinished) listener.completed(*context, loss.end.code, loss.end.why);
        listener.lost(loss.lane_id, loss.end.code, loss.end.why);
    }
    return happened;
}

// Not before all connections that were open at the end have been read: one more round, if their handshakes are known.
bool TcpWire::can_report(const Loss& loss) const {
    if (!loss.end.by_peer) return true;
    const auto now = Clock::now();
    if (now >= loss.deadline) return true;
    const auto may_be_of_peer = [&](const Owned& each) {
        const int pe = each->lane_id().pe;
        return (pe == loss.lane_id.pe && each->is_welcomed()) || (pe < 0 && now - each->begin() < max_deferral);
    };
    return round_ > loss.round && std::ranges::none_of(connections_, may_be_of_peer);
}

bool TcpWire::prepare_to_wait(network::WakeEvents /*what*/) {
    const auto is_new = [this](const Loss& each) { return each.round == round_; };
    return completions_.empty() && next_loss() == losses_.end() && std::ranges::none_of(losses_, is_new);
}

}  // namespace npushmem::tcp
