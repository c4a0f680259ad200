// Connections as they are needed, and posting.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "npushmem/plugin/local_atomic.hpp"
#include "transports/verbs/verbs_notes.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem::verbs {
namespace {

using network::RemotePlace;
using network::WireContext;

constexpr std::uint64_t most_per_request = 1ULL << 30;

}  // namespace

VerbsWire::Lane& VerbsWire::lane(network::Way way) {
    auto& lanes = peer(way.pe).lanes;
    if (way.lane >= lanes.size()) lanes.resize(way.lane + 1);
    return lanes[way.lane];
}

Result<std::unique_ptr<Connection>> VerbsWire::new_connection(network::Way way, bool theirs) {
    if (by_number_.size() + 1 + WorkChain::most > most_in_flight_)
        return Status{Code::system,
                      fmt::format("{} queue pairs use up the {} entries of the completion queue (fewer for each peer: "
                                  "NPUSHMEM_VERBS_LANES)",
                                  by_number_.size(), port_->cq_entries())};
    auto free = std::find(connections_.begin(), connections_.end(), nullptr);
    if (free == connections_.end()) free = connections_.insert(free, nullptr);
    const auto number = static_cast<std::uint32_t>(free - connections_.begin());
    auto made = Connection::make(*port_, receive_queue_.get(), {way, theirs, number});
    if (!made.ok()) return made;
    *free = made.value().get();
    by_number_.emplace((*free)->number(), *free);
    return made;
}

Status VerbsWire::make_connection(network::Way way) {
    Lane& with = lane(way);
    if (with.connection) return with.connection->failure();
    auto made = new_connection(way, false);
    if (!made.ok()) return made.status();
    with.connection = std::move(made).value();
    return {};
}

Status VerbsWire::greet(network::Way way, std::uint32_t generation, Greeting::Kind kind, const Connection* own) {
    const Contact& to = *peer(way.pe).contact;
    Greeting greeting;
    greeting.from = own_contact();
    greeting.to_nonce = to.nonce;
    greeting.pe = place_.pe;
    if (own != nullptr) greeting.number = own->number();
    if (own != nullptr) greeting.first_packet = own->first_packet();
    greeting.kind = kind;
    greeting.lane = way.lane;
    greeting.generation = generation;
    return greeter_->send(to, greeting);
}

Status VerbsWire::ask(network::Way way) {
    Lane& of = lane(way);
    ++of.asked;
    return greet(way, of.generation, Greeting::Kind::request, of.connection.get());
}

Code VerbsWire::start_asking(network::Way way) {
    if (std::exchange(lane(way).asking, true)) return Code::again;
    Status s = make_connection(way);
    if (s.ok()) s = ask(way);
    if (s.ok()) {
        asking_.push_back({way, now_() + until_asked_again});
        return Code::again;
    }
    Lane& of = lane(way);
    of.asking = false;
    if (way.lane > 0) s = s.within("a context's own queue pair (fewer, shared ones: NPUSHMEM_VERBS_LANES)");
    why_ = s.message();
    if (of.connection) of.connection->fail(s);
    return s.code();
}

// Code::again: it is being made, or something goes before.
Code VerbsWire::connection_to(network::Way way, Connection*& out) {
    if (!peer(way.pe).contact) {
        why_ = "its address is not known";
        return Code::unreachable;
    }
    const Lane& of = lane(way);
    if (!of.connection || !of.connection->ready()) {
        if (!of.connection || of.connection->failure().ok()) return start_asking(way);
    }
    out = of.connection.get();
    if (!out->failure().ok()) {
        why_ = out->failure().message();
        return out->failure().code();
    }
    return out->unfinished != nullptr ? Code::again : Code::ok;
}

Connection* VerbsWire::open_connection(network::Way way) const {
    const auto& peer = peers_[static_cast<std::size_t>(way.pe)];
    if (peer == nullptr || way.lane >= peer->lanes.size()) return nullptr;
    Connection* const found = peer->lanes[way.lane].connection.get();
    return found != nullptr && found->is_open() ? found : nullptr;
}

network::Readiness VerbsWire::readiness(network::Way way) {
    Connection* found = nullptr;
    const Code code = connection_to(way, found);
    if (found != nullptr && found->failure().ok()) return network::Readiness::ready;
    return code == Code::again && lane(way).asked < asked_often ? network::Readiness::soon : network::Readiness::no;
}

Connection* VerbsWire::first_connection(int pe) {
    Connection* ignored = nullptr;
    (void)connection_to({pe}, ignored);
    return lane({pe}).connection.get();
}

std::uint32_t VerbsWire::room(const Connection& connection) const {
    const auto reserved = static_cast<std::uint32_t>(by_number_.size());  // a request that ends a burst, for each
    const std::uint32_t all = most_in_flight_ - std::min(most_in_flight_, in_flight_ + reserved);
    return std::min({connection.room(), all, WorkChain::most});
}

Code VerbsWire::post(Connection& connection, WorkChain& chain, Posted last) {
    const std::uint32_t before = connection.under_way();
    const Code posted = connection.post(chain, last);
    in_flight_ += connection.under_way() - before;
    if (posted != Code::ok) why_ = connection.failure().message();
    return posted;
}

VerbsWire::Prepared VerbsWire::fail_later(WireContext& context, Status why) {
    failed_.push_back({&context, std::move(why)});
    return Prepared::failed;
}

VerbsWire::Prepared VerbsWire::prepare_keys(Connection& connection, const RemotePlace& place, std::uint64_t bytes,
                                            WireContext& context) {
    RemoteMemory& remote = this->remote(place.key);
    if (!remote.has(place.offset, bytes)) return fail_later(context, {Code::range, "beyond the peer's memory"});
    if (auto failure = remote.take_failure(place.offset, bytes)) return fail_later(context, std::move(*failure));
    Connection* const asked = place.way.lane == 0 ? &connection : first_connection(place.way.pe);
    if (asked == nullptr || !asked->failure().ok()) return fail_later(context, {Code::peer_dead, why_});
    const bool known = remote.knows(place.offset, bytes, [&](std::uint64_t chunk) {
        send_note(*asked, KeyRequest::kind, bytes_from(KeyRequest{remote.region(), chunk, place.key}));
    });
    return known ? Prepared::yes : Prepared::not_yet;
}

VerbsWire::Prepared VerbsWire::prepare_local(Transfer& transfer, void* local, std::uint64_t bytes) {
    transfer.local = static_cast<std::byte*>(local);
    if (memory_->has(local, bytes)) {
        Status s = memory_->prepare(local, bytes);
        return s.ok() ? Prepared::yes : fail_later(*transfer.context, std::move(s));
    }
    if (bytes > copies_->bytes()) {
        transfer.registration = cache_->find(local, bytes);
        if (transfer.registration) return Prepared::yes;
        auto made = port_->register_memory(local, bytes, transfer.reads ? IBV_ACCESS_LOCAL_WRITE : 0);
        if (!made.ok()) return fail_later(*transfer.context, made.status());
        transfer.registration = std::move(made).value();
        return Prepared::yes;
    }
    transfer.buffer = copies_->take();
    if (transfer.buffer == nullptr) return Prepared::not_yet;
    transfer.pool = copies_.get();
    transfer.local = transfer.buffer;
    if (!transfer.reads) std::memcpy(transfer.buffer, local, bytes);
    if (transfer.reads) transfer.copy_to = local;
    transfer.copy_size = bytes;
    return Prepared::yes;
}

VerbsWire::Transfer& VerbsWire::take_transfer(WireContext& context) {
    if (free_transfers_.empty()) free_transfers_.push_back(&transfers_.emplace_back());
    Transfer& out = *free_transfers_.back();
    free_transfers_.pop_back();
    out = {};
    out.context = &context;
    return out;
}

void VerbsWire::give_back(Transfer& transfer) {
    if (transfer.buffer != nullptr) transfer.pool->give_back(transfer.buffer);
    transfer.buffer = nullptr;
    transfer.registration.reset();
    free_transfers_.push_back(&transfer);
}

LocalMemory::Piece VerbsWire::local_piece(const Transfer& transfer) const {
    if (transfer.registration) return {transfer.registration->lkey, transfer.left};
    if (transfer.buffer != nullptr) return {transfer.pool->lkey(), transfer.left};
    return memory_->piece_at(transfer.local);
}

void VerbsWire::add_pieces(Connection& connection, Transfer& transfer, WorkChain& chain, std::uint32_t most) {
    const std::uint64_t largest = std::min<std::uint64_t>(most_per_request, port_->port().max_msg_sz);
    while (transfer.left > 0 && chain.size() < most) {
        const auto there = transfer.remote->piece_at(transfer.offset);
        const bool is_inline = !transfer.reads && transfer.left <= connection.inline_bytes();
        const auto here = is_inline ? LocalMemory::Piece{0, transfer.left} : local_piece(transfer);
        const std::uint64_t bytes = std::min({transfer.left, here.bytes, there.bytes, largest});
        const LocalPlace local{transfer.local, static_cast<std::uint32_t>(bytes), here.lkey};
        const RemoteWord remote{transfer.base + transfer.offset, there.rkey};
        if (transfer.reads)
            chain.read(remote, local);
        else
            chain.write(local, remote, is_inline);
        transfer.local += bytes;
        transfer.offset += bytes;
        transfer.left -= bytes;
    }
}

// Code::ok: all of it is posted. Code::again: there is no room for more now.
Code VerbsWire::pump(Connection& connection, Transfer& transfer) {
    for (;;) {
        const std::uint32_t most = room(connection);
        WorkChain chain;
        add_pieces(connection, transfer, chain, most);
        bool done = transfer.left == 0;
        if (done && transfer.signal) {
            done = chain.size() < most;
            if (done)
                chain.write({&transfer.signal->value, sizeof transfer.signal->value, 0}, transfer.signal->at, true);
        }
        if (chain.size() == 0) return Code::again;
        const Code posted = post(connection, chain, done ? Posted{Posted::Kind::transfer, &transfer} : Posted{});
        if (posted != Code::ok || done) return posted;
    }
}

RemoteWord VerbsWire::word_at(const RemotePlace& place) {
    return {place.base + place.offset, remote(place.key).piece_at(place.offset).rkey};
}

Code VerbsWire::transfer(const RemotePlace& place, void* local, std::uint64_t bytes, bool reads,
                         const RemotePlace* signal_at, std::uint64_t signal, WireContext& context) {
    Connection* connection = nullptr;
    if (const Code code = connection_to(place.way, connection); code != Code::ok) return code;
    if (room(*connection) < 2) return Code::again;
    Prepared prepared = prepare_keys(*connection, place, bytes, context);
    if (prepared == Prepared::yes && signal_at != nullptr)
        prepared = prepare_keys(*connection, *signal_at, sizeof signal, context);
    if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;

    Transfer& made = take_transfer(context);
    made.reads = reads;
    made.left = bytes;
    made.remote = &remote(place.key);
    made.base = place.base;
    made.offset = place.offset;
    made.local = static_cast<std::byte*>(local);
    if (signal_at != nullptr) made.signal = Signal{word_at(*signal_at), signal};
    if (reads || bytes > connection->inline_bytes()) prepared = prepare_local(made, local, bytes);
    if (prepared != Prepared::yes) {
        give_back(made);
        return prepared == Prepared::failed ? Code::ok : Code::again;
    }
    const Code pumped = pump(*connection, made);
    if (pumped == Code::ok) return Code::ok;
    // With the connection broken, what is under way of it is waited for all the same, and nobody told.
    if (pumped != Code::again) made.context = nullptr;
    connection->unfinished = &made;
    watch(*connection);
    return pumped == Code::again ? Code::ok : pumped;
}

Code VerbsWire::write_at_once(const RemotePlace& to, const void* from, std::uint64_t bytes, WireContext& context) {
    Connection* const connection = open_connection(to.way);
    if (connection == nullptr || bytes > connection->inline_bytes() || room(*connection) == 0) return Code::again;
    const std::uint32_t rkey = remote(to.key).key_of(to.offset, bytes);
    if (rkey == 0) return Code::again;
    WorkChain chain;
    chain.write({from, static_cast<std::uint32_t>(bytes), 0}, {to.base + to.offset, rkey}, true);
    return post(*connection, chain, {Posted::Kind::context, &context});
}

Code VerbsWire::write(const RemotePlace& to, const void* from, std::uint64_t bytes, WireContext& context) {
    if (const Code code = write_at_once(to, from, bytes, context); code != Code::again) return code;
    // A write does not change its source.
    return transfer(to, const_cast<void*>(from), bytes, false, nullptr, 0, context);
}

Code VerbsWire::read(const RemotePlace& from, void* to, std::uint64_t bytes, WireContext& context) {
    return transfer(from, to, bytes, true, nullptr, 0, context);
}

Code VerbsWire::write_signal(const RemotePlace& to, const void* from, std::uint64_t bytes, const RemotePlace& at,
                             std::uint64_t signal, WireContext& context) {
    return transfer(to, const_cast<void*>(from), bytes, false, &at, signal, context);
}

Code VerbsWire::atomic(const RemotePlace& at, const npushmem_atomic& op, WireContext& context) {
    Connection* connection = open_connection(at.way);
    if (connection == nullptr)
        if (const Code code = connection_to(at.way, connection); code != Code::ok) return code;
    if (room(*connection) == 0) return Code::again;
    RemoteWord word_there{at.base + at.offset, remote(at.key).key_of(at.offset, op.width)};
    if (word_there.rkey == 0) {
        const Prepared prepared = prepare_keys(*connection, at, op.width, context);
        if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;
        word_there = word_at(at);
    }
    std::byte* const word = words_->take();
    if (word == nullptr) return Code::again;
    fetches_[words_->index_of(word)] = {&context, fetches(op.operation) ? op.result : nullptr, op.width};
    const LocalPlace old{word, sizeof(std::uint64_t), words_->lkey()};
    WorkChain chain;
    if (op.operation == NPUSHMEM_ATOMIC_FETCH)
        chain.read(word_there, old);
    else if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP)
        chain.compare_swap(word_there, op.compare, op.operand, old);
    else
        chain.fetch_add(word_there, op.operand, old);
    const Code posted = post(*connection, chain, {Posted::Kind::word, word});
    if (posted != Code::ok) words_->give_back(word);
    return posted;
}

Code VerbsWire::send_message(Connection& connection, std::span<const std::byte> head, std::span<const std::byte> rest,
                             std::uint32_t note) {
    if (room(connection) == 0) return Code::again;
    const auto length = [](std::span<const std::byte> bytes) { return static_cast<std::uint32_t>(bytes.size()); };
    WorkChain chain;
    if (head.size() + rest.size() <= connection.inline_bytes()) {
        chain.message({head.data(), length(head), 0}, {rest.data(), length(rest), 0}, true, htonl(note));
        return post(connection, chain, {});
    }
    std::byte* const buffer = sends_->take();
    if (buffer == nullptr) return Code::again;
    std::memcpy(buffer, head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer + head.size(), rest.data(), rest.size());
    chain.message({buffer, length(head) + length(rest), sends_->lkey()}, {}, false, htonl(note));
    const Code posted = post(connection, chain, {Posted::Kind::message, buffer});
    if (posted != Code::ok) sends_->give_back(buffer);
    return posted;
}

Code VerbsWire::send(network::Way way, std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (head.size() + rest.size() > message_bytes) return Code::argument;
    Connection* connection = nullptr;
    if (const Code code = connection_to(way, connection); code != Code::ok) return code;
    return send_message(*connection, head, rest, 0);
}

namespace {

// Stopped, everything that is under way completes; what has found no room yet follows when nothing is.
void give_up(Connection& connection, const char* why) {
    connection.fail({Code::peer_dead, why});
    connection.stop();
    connection.notes.clear();
}

}  // namespace

void VerbsWire::forget(int pe) {
    Peer& of = peer(pe);
    for (const auto& each : of.lanes) {
        if (!each.connection) continue;
        give_up(*each.connection, "the peer has been given up");
        if (each.connection->unfinished != nullptr) watch(*each.connection);
    }
    for (auto& [number, each] : of.theirs) each.connection->stop();
}

void VerbsWire::close(network::Way way) {
    Lane& closed = lane(way);
    ++closed.generation;
    closed.asking = false;
    closed.asked = 0;
    std::erase_if(asking_, [&](const Asking& asking) { return asking.way == way; });
    if (closed.connection) retire(std::move(closed.connection));
}

void VerbsWire::retire(std::unique_ptr<Connection> connection) {
    connection->retired = true;
    give_up(*connection, "the connection has been closed");
    if (connection->unfinished != nullptr) watch(*connection);
    retired_.push_back(std::move(connection));
}

bool VerbsWire::is_over(const Connection& retired) {
    return retired.under_way() == 0 && retired.unfinished == nullptr && !retired.watched;
}

void VerbsWire::destroy_retired(std::size_t count) {
    const auto end = retired_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto gone = std::remove_if(retired_.begin(), end, [this](const auto& each) {
        if (!is_over(*each)) return false;
        by_number_.erase(each->number());
        std::erase_if(events_, [&](const Event& event) { return event.queue_pair == each->number(); });
        connections_[each->purpose().number] = nullptr;
        return true;
    });
    retired_.erase(gone, end);
}

void VerbsWire::watch(Connection& connection) {
    if (std::exchange(connection.watched, true)) return;
    watched_.push_back(&connection);
    // It goes on when something completes. A thread may be waiting for arrivals alone, and what has completed already
    // makes no event.
    descriptor_.wake();
}

void VerbsWire::send_note(Connection& connection, std::uint32_t kind, Bytes bytes) {
    connection.notes.push_back({kind, std::move(bytes)});
    (void)send_notes(connection);
    if (!connection.notes.empty()) watch(connection);
}

// True: something was sent.
bool VerbsWire::send_notes(Connection& connection) {
    bool sent = false;
    while (!connection.notes.empty() && connection.ready() && connection.failure().ok()) {
        const Connection::Note& next = connection.notes.front();
        if (send_message(connection, next.bytes, {}, next.kind) != Code::ok) break;
        connection.notes.pop_front();
        sent = true;
    }
    return sent;
}

}  // namespace npushmem::verbs
