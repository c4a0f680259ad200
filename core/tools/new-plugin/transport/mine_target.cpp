// SPDX-License-Identifier: BSD-3-Clause
#include "mine_target.hpp"

#include <atomic>
#include <cstring>
#include <string>

#include "npushmem/plugin/local_atomic.hpp"

namespace mine_plugin {
namespace {

// A connection's share of one pass over all connections.
constexpr int max_messages_per_pass = 64;
constexpr std::uint64_t handle_magic = 0x6e707573686d656d;

// FNV-1a over the fields, word by word. Detects damage, not forgery.
std::uint64_t checksum_of(const Handle& handle) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (const std::uint64_t word : {handle_magic, handle.region, handle.bytes, handle.pe})
        sum = (sum ^ word) * 0x100000001b3;
    return sum ^ (sum >> 29);
}

template <class Word>
bool is_one_word(const void* address, std::uint64_t bytes) {
    return bytes == sizeof(Word) && reinterpret_cast<std::uintptr_t>(address) % sizeof(Word) == 0;
}

// An aligned word is written by one store, because the program may poll it. Release: pairs with the acquire of that
// program, which then sees all earlier updates of this peer.
template <class Word>
void store_word(std::byte* to, const std::byte* from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

void write_bytes(std::byte* to, std::span<const std::byte> from) {
    if (is_one_word<std::uint64_t>(to, from.size())) return store_word<std::uint64_t>(to, from.data());
    if (is_one_word<std::uint32_t>(to, from.size())) return store_word<std::uint32_t>(to, from.data());
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

// Acquire: pairs with the release of the program that wrote the word.
template <class Word>
void load_word(std::byte* to, std::byte* from) {
    const Word word = std::atomic_ref<Word>(*reinterpret_cast<Word*>(from)).load(std::memory_order_acquire);
    std::memcpy(to, &word, sizeof word);
}

void read_bytes(Bytes& to, std::byte* from, std::uint64_t bytes) {
    to.resize(bytes);
    if (is_one_word<std::uint64_t>(from, bytes)) return load_word<std::uint64_t>(to.data(), from);
    if (is_one_word<std::uint32_t>(from, bytes)) return load_word<std::uint32_t>(to.data(), from);
    if (bytes > 0) std::memcpy(to.data(), from, bytes);
}

Code execute_atomic(std::byte* address, const Header& request, Bytes& reply) {
    std::uint64_t old = 0;
    npushmem_atomic op{};
    op.operation = request.operation;
    op.width = request.width;
    op.operand = request.operand;
    op.compare = request.compare;
    op.result = &old;
    const Code code = npushmem::apply_atomic(address, op);
    if (code != Code::ok || !npushmem::fetches(op.operation)) return code;
    reply.resize(op.width);
    std::memcpy(reply.data(), &old, op.width);
    return code;
}

// The number of bytes of the region that a request accesses.
std::uint64_t accessed_bytes(const Header& request) {
    switch (request.kind) {
        case Kind::atomic: return request.width;
        case Kind::signal: return sizeof(std::uint64_t);
        default: return request.bytes;
    }
}

}  // namespace

Result<Handle> Handle::decode(std::span<const std::byte> bytes, int pe) {
    Handle out;
    if (bytes.size() != sizeof out)
        return Status{Code::protocol, "a memory handle of PE " + std::to_string(pe) + " has " +
                                          std::to_string(bytes.size()) + " bytes; transport mine expects " +
                                          std::to_string(sizeof out)};
    std::memcpy(&out, bytes.data(), sizeof out);
    if (out.checksum != checksum_of(out))
        return Status{Code::protocol, "a memory handle of PE " + std::to_string(pe) +
                                          " is damaged, or not a handle of transport mine: its checksum is wrong"};
    if (pe < 0 || out.pe != static_cast<std::uint64_t>(pe))
        return Status{Code::argument,
                      "a memory handle of PE " + std::to_string(out.pe) + " was given for PE " + std::to_string(pe)};
    return out;
}

Bytes Handle::encode() const {
    Handle complete = *this;
    complete.checksum = checksum_of(complete);
    Bytes out(sizeof complete);
    std::memcpy(out.data(), &complete, sizeof complete);
    return out;
}

std::uint64_t Regions::add(const npushmem_memory& memory) {
    const std::lock_guard lock(mutex_);
    regions_[++last_region_] = {static_cast<std::byte*>(memory.base), memory.bytes};
    return last_region_;
}

bool Regions::remove(std::uint64_t region) {
    const std::lock_guard lock(mutex_);
    return regions_.erase(region) == 1;
}

Code Regions::execute(const Header& request, std::span<const std::byte> payload, Bytes& reply) {
    const std::lock_guard lock(mutex_);
    const auto region = regions_.find(request.region);
    if (region == regions_.end()) return Code::argument;
    if (!fits(request.offset, accessed_bytes(request), region->second.bytes)) return Code::range;
    std::byte* const address = region->second.base + request.offset;
    switch (request.kind) {
        case Kind::put: write_bytes(address, payload); return Code::ok;
        case Kind::get: read_bytes(reply, address, request.bytes); return Code::ok;
        case Kind::atomic: return execute_atomic(address, request, reply);
        case Kind::signal: return npushmem::apply_signal(address, request.operand, request.operation);
        default: return Code::protocol;
    }
}

Code Responder::progress(std::span<std::byte> buffer) {
    const bool waited = reply_waits_;
    if (waited && !send_reply()) return Code::ok;
    for (int i = 0; i < max_messages_per_pass && !reply_waits_; ++i) {
        std::size_t bytes = 0;
        const Connection::Received received = connection_->receive(buffer, bytes);
        if (received == Connection::Received::none) break;
        if (received == Connection::Received::closed) return Code::unreachable;
        if (received == Connection::Received::broken) return pe_ < 0 ? Code::unreachable : Code::peer_dead;
        if (!handle(buffer.first(bytes))) return Code::protocol;
    }
    if (waited != reply_waits_)
        connection_->watch(reply_waits_ ? Connection::Interest::room : Connection::Interest::input);
    return Code::ok;
}

// Returns false if the message is malformed. A valid request that cannot be executed is answered with its code.
bool Responder::handle(std::span<const std::byte> message) {
    Header request;
    std::span<const std::byte> payload;
    if (!parse(message, request, payload)) return false;
    const bool is_put = request.kind == Kind::put;
    if (payload.size() != (is_put ? request.bytes : 0)) return false;
    if (request.kind == Kind::hello) {
        const bool good = pe_ < 0 && request.pe >= 0 && request.operand == secret_;
        pe_ = good ? request.pe : pe_;
        return good;
    }
    if (pe_ < 0 || request.kind == Kind::reply) return false;
    // A reply is one message: a request for more would need more memory than the limit of this connection.
    if (request.kind == Kind::get && request.bytes > max_piece) return false;
    reply_payload_.clear();
    const Code code = regions_.execute(request, payload, reply_payload_);
    if (failure_ == Code::ok) failure_ = code;
    if (request.wants_reply == 0) return true;
    reply_ = Header{};
    reply_.kind = Kind::reply;
    reply_.bytes = reply_payload_.size();
    reply_.code = static_cast<std::int32_t>(std::exchange(failure_, Code::ok));
    reply_waits_ = true;
    (void)send_reply();
    return true;
}

// Returns false if there is no room. A closed connection drops the reply: the next receive reports the end.
bool Responder::send_reply() {
    reply_waits_ = connection_->send(reply_, reply_payload_) == Connection::Sent::full;
    return !reply_waits_;
}

}  // namespace mine_plugin
