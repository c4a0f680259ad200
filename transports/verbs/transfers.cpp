// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/transfers.hpp"

#include <algorithm>

namespace npushmem::verbs {
namespace {

constexpr std::uint64_t max_bytes_per_request = 1ULL << 30;

}  // namespace

Prepared Transfers::prepare_keys(Connection& connection, const Operation& operation) {
    const Prepared prepared = keys_.prepare(connection, operation.place, operation.bytes, operation.context);
    if (prepared != Prepared::yes || operation.signal_at == nullptr) return prepared;
    return keys_.prepare(connection, *operation.signal_at, sizeof operation.signal, operation.context);
}

Prepared Transfers::prepare_local(Transfer& transfer, void* local, std::uint64_t bytes) {
    transfer.local = static_cast<std::byte*>(local);
    if (memory_.has(local, bytes)) {
        Status s = memory_.prepare(local, bytes);
        return s.ok() ? Prepared::yes : failures_.add(*transfer.context, std::move(s));
    }
    if (bytes > bounce_buffers_->bytes()) {
        transfer.registration = cache_->find(local, bytes);
        if (transfer.registration) return Prepared::yes;
        auto made = port_.domain().register_memory(local, bytes, transfer.reads ? IBV_ACCESS_LOCAL_WRITE : 0);
        if (!made.ok()) return failures_.add(*transfer.context, made.status());
        transfer.registration = std::move(made).value();
        return Prepared::yes;
    }
    transfer.buffer = bounce_buffers_->take();
    if (transfer.buffer == nullptr) return Prepared::not_yet;
    transfer.local = transfer.buffer;
    if (!transfer.reads) std::memcpy(transfer.buffer, local, bytes);
    if (transfer.reads) transfer.copy_to = local;
    transfer.copy_size = bytes;
    return Prepared::yes;
}

Transfer& Transfers::take(const Operation& operation) {
    if (free_transfers_.empty()) free_transfers_.push_back(&transfers_.emplace_back());
    Transfer& out = *free_transfers_.back();
    free_transfers_.pop_back();
    out = {};
    out.context = &operation.context;
    out.reads = operation.reads;
    out.left = operation.bytes;
    out.remote = &keys_.at(operation.place.key);
    out.base = operation.place.base;
    out.offset = operation.place.offset;
    out.local = static_cast<std::byte*>(operation.local);
    if (operation.signal_at != nullptr)
        out.signal = Transfer::Signal{keys_.word_at(*operation.signal_at), operation.signal};
    return out;
}

void Transfers::release(Transfer& transfer) {
    if (transfer.buffer != nullptr) bounce_buffers_->release(transfer.buffer);
    transfer.buffer = nullptr;
    transfer.registration.reset();
    free_transfers_.push_back(&transfer);
}

LocalMemory::Piece Transfers::local_piece(const Transfer& transfer) const {
    if (transfer.registration) return {transfer.registration->lkey, transfer.left};
    if (transfer.buffer != nullptr) return {bounce_buffers_->lkey(), transfer.left};
    return memory_.piece_at(transfer.local);
}

void Transfers::add_pieces(Connection& connection, Transfer& transfer, WorkChain& chain, std::uint32_t max_size) {
    const std::uint64_t largest = std::min<std::uint64_t>(max_bytes_per_request, port_.port().max_msg_sz);
    while (transfer.left > 0 && chain.size() < max_size) {
        const auto there = transfer.remote->piece_at(transfer.offset);
        const bool is_inline = !transfer.reads && transfer.left <= connection.pair().inline_bytes();
        const auto here = is_inline ? LocalMemory::Piece{0, transfer.left} : local_piece(transfer);
        const std::uint64_t bytes = std::min({transfer.left, here.bytes, there.bytes, largest});
        const LocalSegment local{transfer.local, static_cast<std::uint32_t>(bytes), here.lkey};
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

Code Transfers::post_remaining(Connection& connection, Transfer& transfer) {
    for (;;) {
        const std::uint32_t max_size = poster_.room(connection);
        WorkChain chain;
        add_pieces(connection, transfer, chain, max_size);
        bool done = transfer.left == 0;
        if (done && transfer.signal) {
            done = chain.size() < max_size;
            if (done)
                chain.write({&transfer.signal->value, sizeof transfer.signal->value, 0}, transfer.signal->at, true);
        }
        if (chain.size() == 0) return Code::again;
        const Code posted =
            poster_.post(connection, chain,
                         done ? CompletionAction{CompletionAction::Kind::transfer, &transfer} : CompletionAction{});
        if (posted != Code::ok || done) return posted;
    }
}

Code Transfers::start(Connection& connection, const Operation& operation) {
    if (poster_.room(connection) < 2) return Code::again;
    Prepared prepared = prepare_keys(connection, operation);
    if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;

    Transfer& made = take(operation);
    if (operation.reads || operation.bytes > connection.pair().inline_bytes())
        prepared = prepare_local(made, operation.local, operation.bytes);
    if (prepared != Prepared::yes) {
        release(made);
        return prepared == Prepared::failed ? Code::ok : Code::again;
    }
    const Code posted = post_remaining(connection, made);
    if (posted == Code::ok) return Code::ok;
    // When the connection is broken, this still waits for its requests in flight, without reporting the operation.
    if (posted != Code::again) made.context = nullptr;
    connection.unfinished = &made;
    service_.add(connection);
    return posted == Code::again ? Code::ok : posted;
}

bool Transfers::resume(network::WireListener& listener, Connection& connection, ConnectionTable& connections) {
    Transfer* const unfinished = connection.unfinished;
    if (unfinished == nullptr) return false;
    if (connection.failure().ok()) {
        const std::uint64_t before = unfinished->left;
        const Code posted = post_remaining(connection, *unfinished);
        if (posted == Code::ok) connection.unfinished = nullptr;
        if (posted != Code::ok && posted != Code::again) connections.lose(listener, connection, connection.failure());
        return unfinished->left != before || posted == Code::ok;
    }
    if (connection.requests().under_way() > 0) return false;  // the device may still access its memory
    connection.unfinished = nullptr;
    completed(listener, *unfinished, connection.failure());
    return true;
}

void Transfers::completed(network::WireListener& listener, Transfer& transfer, const Status& done) {
    if (done.ok() && transfer.copy_to != nullptr) std::memcpy(transfer.copy_to, transfer.buffer, transfer.copy_size);
    network::WireContext* const context = transfer.context;
    release(transfer);
    if (context != nullptr) listener.completed(*context, done.code(), done.message());
}

void AtomicResults::completed(network::WireListener& listener, std::byte* word, const Status& done) {
    const Fetch fetch = fetches_[words_->index_of(word)];
    if (done.ok() && fetch.copy_to != nullptr) std::memcpy(fetch.copy_to, word, fetch.width);
    words_->release(word);
    listener.completed(*fetch.context, done.code(), done.message());
}

}  // namespace npushmem::verbs
