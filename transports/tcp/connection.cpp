// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem::tcp {

using network::bytes_of;

namespace {

template <class Structure>
Structure structure_at(std::span<const std::byte> bytes) {
    Structure out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
}

// An aligned word is one store.
template <class Word>
bool store_word(std::byte* to, std::span<const std::byte> data) {
    if (data.size() != sizeof(Word) || reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) != 0) return false;
    Word word;
    std::memcpy(&word, data.data(), sizeof word);
    // Partner: the acquire load of the reader, who then also sees all earlier writes.
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
    return true;
}

void store(std::byte* to, std::span<const std::byte> data) {
    if (store_word<std::uint64_t>(to, data) || store_word<std::uint32_t>(to, data)) return;
    // Partner: the acquire load of the reader of these bytes.
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(to, data.data(), data.size());
}

// An aligned word is one load.
template <class Word>
bool load_word(std::span<std::byte> to, const std::byte* from) {
    if (to.size() != sizeof(Word) || reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) != 0) return false;
    const Word word = std::atomic_ref<Word>(*reinterpret_cast<Word*>(const_cast<std::byte*>(from)))
                          .load(std::memory_order_acquire);  // pairs with the stores of writers
    std::memcpy(to.data(), &word, sizeof word);
    return true;
}

void load(std::span<std::byte> to, const std::byte* from) {
    if (load_word<std::uint64_t>(to, from) || load_word<std::uint32_t>(to, from)) return;
    std::memcpy(to.data(), from, to.size());
}

// The kernel delays acknowledgements while it takes a connection for interactive, as one with small messages in both
// directions is. The sender of much data needs them at once: with BBR every second job sent frames of 64 KiB at 0.4 of
// the speed. The next small messages make the kernel delay them again.
constexpr std::size_t long_bytes = 16384;
void acknowledge_at_once(const Socket& socket) {
    const int at_once = 1;
    (void)::setsockopt(socket.fd(), IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
}

bool is_end_by_peer(int error) { return error == ECONNRESET || error == EPIPE; }

}  // namespace

void Connection::set_handshake(const Handshake& handshake) {
    const auto bytes = bytes_of(handshake);
    handshake_.assign(bytes.begin(), bytes.end());
}

bool Connection::send_handshake() {
    if (const int error = socket_.connect_error(); error != 0) {
        fail(Code::unreachable, fmt::format("cannot connect: {}", std::strerror(error)));
        return false;
    }
    const Transfer sent = socket_.send(handshake_);
    if (sent.outcome == Transfer::Outcome::failed) fail_with(sent.error);
    handshake_.erase(handshake_.begin(), handshake_.begin() + static_cast<std::ptrdiff_t>(sent.bytes));
    return is_open() && handshake_.empty();
}

void Connection::welcome() {
    FrameHeader welcome;
    welcome.kind = FrameKind::welcome;
    queue_.open();
    (void)post(bytes_of(welcome), {});
}

void Connection::take_operations(Connection& other) {
    queue_.take(other.queue_);
    reads_ = std::exchange(other.reads_, {});
    has_operated_ = other.has_operated_;
    (void)flush();
}

bool Connection::post(std::span<const std::byte> head, const Payload& payload) {
    if (!is_open() || sending_failed_ || refused_) return false;
    if (goes_into_batch(head, payload))
        queue_.add_to_batch(head, payload);
    else if (!queue_.post(socket_, head, payload))
        return fail_sending(queue_.error()), false;
    report_sent();
    return true;
}

bool Connection::goes_into_batch(std::span<const std::byte> head, const Payload& payload) {
    const std::size_t bytes = payload.first.size() + payload.second.size();
    const std::chrono::microseconds max_gap = owner_.max_gap();
    if (!payload.may_wait || bytes > max_batched || max_gap.count() == 0) return false;
    if (std::exchange(last_progress_, owner_.progress_calls()) != owner_.progress_calls()) burst_ = 0;
    if (++burst_ == 1) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - std::exchange(last_posted_, now) > max_gap) burst_ = 1;
    if (burst_ <= frames_before_batch) return false;
    if (!queue_.has_room_in_batch(head.size() + bytes)) return false;
    if (queue_.has_batch()) return now - batch_begin_ <= max_batch_age;
    batch_begin_ = now;
    owner_.batch_begins(*this);
    return true;
}

void Connection::send_batch() {
    if (!is_open() || sending_failed_) return;
    if (!queue_.send_batch(socket_)) fail_sending(queue_.error());
}

void Connection::report_sent() {
    for (network::WireContext* context : queue_.take_sent()) owner_.completed(*context, Code::ok, {});
}

bool Connection::send_message(std::span<const std::byte> head, std::span<const std::byte> rest) {
    FrameHeader header;
    header.kind = FrameKind::message;
    header.bytes = head.size() + rest.size();
    has_operated_ = true;
    return post(bytes_of(header), {.first = head, .second = rest, .may_wait = true});
}

bool Connection::write(const FrameHeader& header, const FrameSignal* signal, std::span<const std::byte> data,
                       bool copied, network::WireContext& context) {
    has_operated_ = true;
    std::array<std::byte, sizeof header + sizeof *signal> head;
    std::memcpy(head.data(), &header, sizeof header);
    if (signal != nullptr) std::memcpy(head.data() + sizeof header, signal, sizeof *signal);
    return post(std::span(head).first(sizeof header + (signal != nullptr ? sizeof *signal : 0)),
                {.first = data, .copied = copied, .may_wait = copied, .context = &context});
}

bool Connection::read(const FrameHeader& header, void* to, network::WireContext& context) {
    has_operated_ = true;
    if (!post(bytes_of(header), {.may_wait = true})) return false;
    reads_.push_back({static_cast<std::byte*>(to), header.bytes, &context});
    return true;
}

bool Connection::flush() {
    if (!is_open()) return false;
    if (!handshake_.empty() && !send_handshake()) return true;
    bool moved = false;
    const bool sent = queue_.flush(socket_, moved);
    if (moved && lane_id_.pe >= 0) owner_.active(lane_id_.pe);  // it takes what may be a long put
    report_sent();
    if (!sent)
        fail_sending(queue_.error());
    else
        finish_refusal();
    return true;
}

bool Connection::receive(std::span<std::byte> scratch) {
    constexpr int rounds = 4;  // other connections get their turn
    bool happened = false;
    for (int round = 0; round < rounds && is_open() && accepts_frames(); ++round) {
        const bool direct = arriving_.left > 0;
        std::array<iovec, 2> parts{iovec{arriving_.place, direct ? arriving_.left : 0},
                                   iovec{scratch.data(), scratch.size()}};
        const ssize_t got = ::readv(socket_.fd(), parts.data(), static_cast<int>(parts.size()));
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return happened;
        if (got < 0) return fail_with(errno), true;
        if (got == 0) return fail(Code::peer_dead, "it has closed the connection", true), true;
        happened = true;
        if (lane_id_.pe >= 0) owner_.active(lane_id_.pe);
        const auto bytes = static_cast<std::size_t>(got);
        if (bytes >= long_bytes) acknowledge_at_once(socket_);
        const std::size_t placed = std::min<std::uint64_t>(bytes, parts[0].iov_len);
        if (direct) advance(placed);
        consume(scratch.first(bytes - placed));
        if (bytes < parts[0].iov_len + scratch.size()) return true;
    }
    return happened;
}

std::size_t Connection::bytes_needed(std::span<const std::byte> beginning) const {
    if (beginning.size() < sizeof(FrameHeader)) return sizeof(FrameHeader);
    if (direction_ == Direction::incoming && !has_handshake_) return sizeof(Handshake);
    const auto header = structure_at<FrameHeader>(beginning);
    const std::size_t fixed = sizeof header + (header.kind == FrameKind::write_signal ? sizeof(FrameSignal) : 0);
    if (header.kind == FrameKind::message) return fixed + std::min(header.bytes, std::uint64_t{max_message_bytes});
    const bool has_payload = header.kind != FrameKind::read && header.kind != FrameKind::refusal;
    return fixed + (has_payload && header.bytes <= max_whole ? header.bytes : 0);
}

void Connection::consume(std::span<const std::byte> bytes) {
    while (!bytes.empty() && is_open() && !refused_) {
        if (arriving_.left > 0) {
            consume_payload(bytes);
            continue;
        }
        if (partial_.empty() && bytes.size() >= bytes_needed(bytes)) {
            const std::size_t whole = bytes_needed(bytes);
            handle(bytes.first(whole));
            bytes = bytes.subspan(whole);
            continue;
        }
        const std::size_t take = std::min(bytes_needed(partial_) - partial_.size(), bytes.size());
        partial_.insert(partial_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
        bytes = bytes.subspan(take);
        if (partial_.size() < bytes_needed(partial_)) continue;
        const Bytes frame = std::exchange(partial_, {});
        handle(frame);
    }
}

void Connection::consume_payload(std::span<const std::byte>& bytes) {
    const std::size_t take = std::min<std::uint64_t>(arriving_.left, bytes.size());
    std::memcpy(arriving_.place, bytes.data(), take);
    bytes = bytes.subspan(take);
    advance(take);
}

void Connection::advance(std::uint64_t bytes) {
    arriving_.place += bytes;
    arriving_.left -= bytes;
    if (arriving_.left == 0) finish_arriving();
}

// A short payload is here as a whole; a longer one follows.
void Connection::begin_payload(std::span<const std::byte> data) {
    if (data.size() < arriving_.left) return;
    if (arriving_.left > 0) store(arriving_.place, data);
    finish_arriving();
}

void Connection::handle(std::span<const std::byte> frame) {
    if (direction_ == Direction::incoming && !std::exchange(has_handshake_, true)) {
        return owner_.handshake_received(*this, structure_at<Handshake>(frame));
    }
    const auto header = structure_at<FrameHeader>(frame);
    const std::span<const std::byte> rest = frame.subspan(sizeof header);
    switch (header.kind) {
        case FrameKind::message:
            if (is_welcomed() && header.bytes <= max_message_bytes) return owner_.arrived(rest);
            break;
        case FrameKind::write:
        case FrameKind::write_signal:
            if (is_welcomed()) return handle_write(header, rest);
            break;
        case FrameKind::read:
            if (is_welcomed()) return handle_read(header);
            break;
        case FrameKind::data:
            if (is_welcomed()) return handle_data(header, rest);
            break;
        case FrameKind::refusal:
            if (is_welcomed() && has_operated_)
                return fail(Code::range,
                            fmt::format("it has refused {} bytes of a write at offset {} of memory that it has "
                                        "not registered, or no longer",
                                        header.bytes, header.offset));
            break;
        case FrameKind::goodbye:
            if (is_welcomed()) return close({Code::peer_dead, "the peer has closed its transport", true, true});
            break;
        case FrameKind::welcome:
            if (direction_ == Direction::incoming || is_welcomed() || header.bytes != 0) break;
            queue_.open();
            (void)flush();
            return;
    }
    fail(Code::protocol, fmt::format("it has sent a frame of kind {} with {} bytes, which is not one of this version",
                                     static_cast<std::uint32_t>(header.kind), header.bytes));
}

void Connection::handle_write(const FrameHeader& header, std::span<const std::byte> rest) {
    arriving_ = {
        owner_.regions().place(header.region, header.offset, header.bytes), header.bytes, header.region, false, {}};
    if (header.kind == FrameKind::write_signal) {
        arriving_.signal = structure_at<FrameSignal>(rest);
        rest = rest.subspan(sizeof(FrameSignal));
    }
    if (arriving_.place == nullptr) return refuse(header.bytes, header.offset);
    begin_payload(rest);
}

void Connection::handle_read(const FrameHeader& header) {
    FrameHeader answer;
    answer.kind = FrameKind::data;
    const std::byte* const place = owner_.regions().place(header.region, header.offset, header.bytes);
    if (place == nullptr) {
        answer.code = static_cast<std::int32_t>(Code::range);
        (void)post(bytes_of(answer), {.is_answer = true});
        return;
    }
    answer.bytes = header.bytes;
    if (header.bytes > max_whole) {
        (void)post(bytes_of(answer),
                   {.first = {place, header.bytes}, .copied = false, .is_answer = true, .region = header.region});
        return;
    }
    std::array<std::byte, max_whole> copy;
    const std::span<std::byte> data = std::span(copy).first(header.bytes);
    load(data, place);
    (void)post(bytes_of(answer), {.first = data, .is_answer = true});
}

void Connection::handle_data(const FrameHeader& header, std::span<const std::byte> data) {
    const auto code = header.code == 0 ? Code::ok : Code::range;  // the only failure
    const bool expected = !reads_.empty() && header.bytes == (code == Code::ok ? reads_.front().bytes : 0);
    if (!expected)
        return fail(Code::protocol,
                    fmt::format("it has answered a read with {} bytes, which were not requested", header.bytes));
    if (code != Code::ok) {
        const Read failed = reads_.front();
        reads_.pop_front();
        return owner_.completed(*failed.context, code,
                                "the peer has not registered the memory that was read, or no longer");
    }
    arriving_ = {reads_.front().to, header.bytes, 0, true, {}};
    begin_payload(data);
}

void Connection::finish_arriving() {
    const Arriving done = std::exchange(arriving_, {});
    if (done.of_read) {
        const Read read = reads_.front();
        reads_.pop_front();
        return owner_.completed(*read.context, Code::ok, {});
    }
    if (!done.signal) return;
    const FrameSignal& signal = *done.signal;
    std::byte* const word = owner_.regions().place(signal.region, signal.offset, sizeof signal.value);
    if (word != nullptr && apply_signal(word, signal.value, NPUSHMEM_SIGNAL_SET) == Code::ok) return;
    refuse(sizeof signal.value, signal.offset);
}

void Connection::refuse(std::uint64_t bytes, std::uint64_t offset) {
    FrameHeader refusal;
    refusal.kind = FrameKind::refusal;
    refusal.bytes = bytes;
    refusal.offset = offset;
    arriving_ = {};
    partial_.clear();
    (void)post(bytes_of(refusal), {});
    refused_ = true;
    finish_refusal();
}

void Connection::finish_refusal() {
    if (refused_ && is_open() && queue_.empty()) (void)::shutdown(socket_.fd(), SHUT_WR);
}

void Connection::send_goodbye() {
    FrameHeader goodbye;
    goodbye.kind = FrameKind::goodbye;
    if (is_welcomed()) (void)post(bytes_of(goodbye), {});
}

std::uint32_t Connection::events() const {
    return (accepts_frames() ? std::uint32_t{EPOLLIN} : 0U) | (must_write() ? std::uint32_t{EPOLLOUT} : 0U);
}

void Connection::leave_region(std::uint64_t region) {
    queue_.copy_answers_of(region);
    if (arriving_.region == region && !arriving_.of_read && arriving_.left > 0) refuse(arriving_.left, 0);
}

void Connection::fail_with(int error) {
    const bool by_peer = is_end_by_peer(error);
    fail(by_peer ? Code::peer_dead : Code::unreachable, std::strerror(error), by_peer);
}

void Connection::fail_sending(int error) {
    if (is_end_by_peer(error))
        sending_failed_ = true;
    else
        fail_with(error);
}

void Connection::close(End end) {
    if (!is_open()) return;
    end_ = std::move(end);
    if (!sending_failed_) (void)queue_.send_batch(socket_);
    unfinished_ = queue_.drop();
    for (const Read& read : reads_) unfinished_.push_back(read.context);
    reads_.clear();
    arriving_ = {};
    partial_.clear();
    const Socket closing = std::exchange(socket_, Socket());
    owner_.ended(*this, closing);
    closing.finish();
}

std::vector<network::WireContext*> Connection::take_unfinished() { return std::exchange(unfinished_, {}); }

}  // namespace npushmem::tcp
