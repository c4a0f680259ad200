// SPDX-License-Identifier: BSD-3-Clause
#include "mine_initiator.hpp"

#include <algorithm>
#include <cstring>

#include "npushmem/plugin/local_atomic.hpp"

namespace mine_plugin {
namespace {

constexpr int max_replies_per_pass = 64;

bool is_get(const Operation& operation) { return operation.data.kind == Kind::get; }

// Only gets and fetching atomics write local memory; other operations complete when their source has been read.
bool completes_when_sent(const Operation& operation) { return !is_get(operation) && operation.result == nullptr; }

}  // namespace

void Queue::record(std::uint64_t token, Code code) {
    if (code == Code::ok) return;
    const std::lock_guard lock(mutex_);
    failures_.push_back({token, code});
    has_failures_.store(true, std::memory_order_relaxed);  // published with the completion of the token
}

Code Queue::take_failure(std::uint64_t token) {
    if (!has_failures_.load(std::memory_order_acquire)) return Code::ok;
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(failures_.begin(), failures_.end(), [=](const Failure& each) { return each.token == token; });
    if (found == failures_.end()) return Code::ok;
    const Code code = found->code;
    failures_.erase(found);
    has_failures_.store(!failures_.empty(), std::memory_order_relaxed);  // written under the lock only
    return code;
}

Code Queue::take_failures() {
    if (!has_failures_.load(std::memory_order_acquire)) return Code::ok;
    const std::lock_guard lock(mutex_);
    const Code code = failures_.empty() ? Code::ok : failures_.front().code;
    failures_.clear();
    has_failures_.store(false, std::memory_order_relaxed);  // written under the lock only
    return code;
}

Code Requester::post(Operation operation, std::uint64_t& token) {
    const std::lock_guard lock(mutex_);
    if (failure_ != Code::ok) return failure_;
    if (operations_.size() >= limits_.depth) return Code::again;
    const std::uint64_t number = posted_count_.load(std::memory_order_relaxed) + 1;  // written under the lock only
    const bool when_sent = completes_when_sent(operation);
    operation.token = Token{number, static_cast<std::uint64_t>(pe_), when_sent}.encode();
    operation.queue->post();
    token = operation.token;
    operations_.push_back(std::move(operation));
    posted_count_.store(number, std::memory_order_relaxed);
    send_all();
    // Nothing is left to wait for, unless the operation fails; then `quiet` returns the code.
    if (when_sent && sent_ == operations_.size()) token = 0;
    return Code::ok;
}

Code Requester::test(Queue& queue, std::uint64_t token) const {
    const Token given = Token::decode(token);
    if (given.number == 0 || given.number > posted_count_.load(std::memory_order_relaxed)) return Code::argument;
    const auto& count = given.when_sent ? sent_count_ : completed_count_;
    // Acquire: pairs with the release of the counts: the result or the failure of the operation is visible.
    return count.load(std::memory_order_acquire) >= given.number ? queue.take_failure(token) : Code::again;
}

void Requester::drop(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    for (Operation& each : operations_) {
        if (each.queue.get() != &queue) continue;
        // Messages that were sent stay, and their replies are discarded. The pieces of a put have no reply of their
        // own: an empty put gets it.
        const bool lacks_reply = each.sent > 0 && each.replies_due == 0 && !is_get(each);
        each.data.bytes = each.sent;
        each.local = nullptr;
        each.result = nullptr;
        if (lacks_reply) {
            each.last.emplace();
            each.last->kind = Kind::put;
            each.last->region = each.data.region;
        } else if (each.replies_due == 0) {
            each.last.reset();
        }
    }
    send_all();
    pop_completed();
}

// Sends in order until there is no room. An operation is sent in pieces, so that a large one needs no memory.
void Requester::send_all() {
    while (sent_ < operations_.size()) {
        bool finished = false;
        if (!send_one(operations_[sent_], finished)) break;
        if (finished) ++sent_;
    }
    // Release: pairs with the load in `test`: the caller may change the sources.
    sent_count_.store(completed_count_.load(std::memory_order_relaxed) + sent_, std::memory_order_release);
    const bool waits_for_room = sent_ < operations_.size();
    if (std::exchange(waits_for_room_, waits_for_room) == waits_for_room) return;
    connection_->watch(waits_for_room ? Connection::Interest::both : Connection::Interest::input);
}

// Sends the next message of the operation. Returns false if there is no room or the connection is closed, which
// `progress` detects.
bool Requester::send_one(Operation& operation, bool& finished) {
    const std::uint64_t piece = std::min(limits_.piece, operation.data.bytes - operation.sent);
    const bool has_pieces = piece > 0;
    finished = operation.sent + piece == operation.data.bytes && (!has_pieces || !operation.last);
    if (!has_pieces && !operation.last) return true;  // dropped
    Header header = has_pieces ? operation.data : *operation.last;
    if (has_pieces) {
        header.offset += operation.sent;
        header.bytes = piece;
    }
    // Each piece of a get has a reply; all pieces of a put have one together.
    header.wants_reply = finished || is_get(operation) ? 1 : 0;
    const std::uint64_t payload_bytes = header.kind == Kind::put ? piece : 0;
    if (connection_->send(header, {operation.local + operation.sent, payload_bytes}) != Connection::Sent::yes)
        return false;
    operation.sent += piece;
    operation.replies_due += header.wants_reply;
    return true;
}

void Requester::pop_completed() {
    std::uint64_t completed = completed_count_.load(std::memory_order_relaxed);  // written under the lock only
    while (sent_ > 0 && operations_.front().replies_due == 0) {
        const Operation done = std::move(operations_.front());
        operations_.pop_front();
        --sent_;
        done.queue->record(done.token, done.code);
        // Release: pairs with the load in `test`. Before `complete`, so that all tokens of a quiet queue are complete.
        completed_count_.store(++completed, std::memory_order_release);
        done.queue->complete();
    }
}

Code Requester::progress(std::span<std::byte> buffer) {
    {
        const std::lock_guard lock(mutex_);
        if (failure_ != Code::ok) return Code::ok;  // was reported
        send_all();
        pop_completed();
    }
    for (int i = 0; i < max_replies_per_pass; ++i) {
        std::size_t bytes = 0;
        const Connection::Received received = connection_->receive(buffer, bytes);
        if (received == Connection::Received::none) return Code::ok;
        if (received == Connection::Received::closed) return Code::unreachable;
        if (received == Connection::Received::broken) return Code::peer_dead;
        if (!handle(buffer.first(bytes))) return Code::protocol;
    }
    return Code::ok;
}

// Returns false if the reply is malformed.
bool Requester::handle(std::span<const std::byte> message) {
    Header reply;
    std::span<const std::byte> payload;
    if (!parse(message, reply, payload)) return false;
    const std::lock_guard lock(mutex_);
    if (reply.kind != Kind::reply || reply.code > 0 || payload.size() != reply.bytes) return false;
    if (operations_.empty() || operations_.front().replies_due == 0) return false;
    Operation& front = operations_.front();
    if (!handle_data(front, reply, payload)) return false;
    if (front.code == Code::ok) front.code = static_cast<Code>(reply.code);
    --front.replies_due;
    send_all();
    pop_completed();
    return true;
}

// A failed request has no data. A dropped operation discards its data.
bool Requester::handle_data(Operation& front, const Header& reply, std::span<const std::byte> payload) const {
    if (!is_get(front)) {
        const bool fetches = front.last && front.last->kind == Kind::atomic && npushmem::fetches(front.last->operation);
        const std::size_t expected = fetches && reply.code == 0 ? front.last->width : 0;
        if (payload.size() != expected) return false;
        if (front.result != nullptr && expected > 0) std::memcpy(front.result, payload.data(), expected);
        return true;
    }
    const std::uint64_t piece = std::min(limits_.piece, front.sent - front.received);
    if (payload.size() != (reply.code == 0 ? piece : 0)) return false;
    if (front.local != nullptr && !payload.empty())
        std::memcpy(front.local + front.received, payload.data(), payload.size());
    front.received += piece;
    return true;
}

void Requester::fail(Code code) {
    const std::lock_guard lock(mutex_);
    if (failure_ != Code::ok) return;
    failure_ = code;
    const std::uint64_t posted = posted_count_.load(std::memory_order_relaxed);  // written under the lock only
    // An operation that has already failed keeps its own code. The order is that of pop_completed.
    for (const Operation& each : operations_) each.queue->record(each.token, each.code == Code::ok ? code : each.code);
    completed_count_.store(posted, std::memory_order_release);
    sent_count_.store(posted, std::memory_order_release);
    for (const Operation& each : operations_) each.queue->complete();
    operations_.clear();
    sent_ = 0;
    waits_for_room_ = false;
    connection_.reset();
}

}  // namespace mine_plugin
