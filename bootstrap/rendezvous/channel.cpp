// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/channel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::uint32_t frame_magic = 0x4255504eU;  // "NPUB" on the wire

}  // namespace

bool is_frame_type(std::uint16_t value) {
    return value >= static_cast<std::uint16_t>(FrameType::hello) && value <= static_cast<std::uint16_t>(FrameType::bye);
}

std::size_t payload_limit(FrameType type) {
    switch (type) {
        case FrameType::hello: return sizeof(SipKey) * 2;
        case FrameType::challenge: return sizeof(SipKey);
        case FrameType::join:
        case FrameType::link:
        case FrameType::assign: return limits::introduction_bytes;
        case FrameType::leave:
        case FrameType::bye: return 0;
        case FrameType::up:
        case FrameType::down: return limits::collective_header_bytes + limits::chunk_bytes;
        case FrameType::abort: return limits::abort_bytes;
    }
    return 0;
}

FrameHeader::Encoded FrameHeader::encode() const {
    ByteWriter out;
    out.integer(frame_magic).integer(protocol_version).integer(static_cast<std::uint16_t>(type));
    out.integer(session).integer(length).integer(sequence);
    Encoded encoded{};
    std::ranges::copy(out.take(), encoded.begin());
    return encoded;
}

Result<FrameHeader> FrameHeader::parse(std::span<const std::byte, bytes> from) {
    ByteReader in(from);
    if (in.integer<std::uint32_t>() != frame_magic)
        return Status{Code::protocol, "the bytes are not a frame of this protocol"};
    const auto version = in.integer<std::uint16_t>();
    if (version != protocol_version)
        return Status{Code::unsupported,
                      fmt::format("it uses version {} of the bootstrap protocol, this library uses version {}", version,
                                  protocol_version)};
    const auto type = in.integer<std::uint16_t>();
    if (!is_frame_type(type)) return Status{Code::protocol, fmt::format("a frame has the unknown type {}", type)};
    FrameHeader header{static_cast<FrameType>(type), in.integer<std::uint32_t>(), in.integer<std::uint32_t>(),
                       in.integer<std::uint64_t>()};
    in.bytes(header.tag);
    if (header.length > payload_limit(header.type))
        return Status{Code::protocol, fmt::format("a frame of type {} claims {} bytes, the limit is {}", type,
                                                  header.length, payload_limit(header.type))};
    return header;
}

SipTag sign(const SipKey& key, const FrameHeader& header, std::span<const std::byte> payload) {
    SipHash128 hash(key);
    hash.update(header.encode());
    hash.update(payload);
    return hash.finish();
}

namespace {

constexpr std::size_t smallest_read = 8192;

Status protocol_error(std::string why) { return {Code::protocol, std::move(why)}; }

}  // namespace

Channel::Channel(Socket socket, std::uint32_t session, std::size_t longest_payload)
    : socket_(std::move(socket)), session_(session), longest_payload_(longest_payload) {}

void Channel::secure(const SipKey& sending, const SipKey& receiving) {
    send_key_ = sending;
    receive_key_ = receiving;
    send_sequence_ = 0;
    receive_sequence_ = 0;
}

void Channel::queue(FrameType type, Parts payload) {
    if (send_closed_) return;
    std::size_t length = 0;
    for (const auto part : payload) length += part.size();
    const std::size_t begin = out_.size();
    out_.resize(begin + FrameHeader::bytes);
    for (const auto part : payload) out_.insert(out_.end(), part.begin(), part.end());
    const FrameHeader header{type, session_, static_cast<std::uint32_t>(length), send_sequence_++};
    const auto at = [&](std::size_t offset) { return out_.begin() + static_cast<std::ptrdiff_t>(begin + offset); };
    std::ranges::copy(header.encode(), at(0));
    if (!send_key_) return;
    const std::span<const std::byte> whole(out_);
    std::ranges::copy(sign(*send_key_, header, whole.subspan(begin + FrameHeader::bytes)),
                      at(FrameHeader::signed_bytes));
}

void Channel::flush() {
    using enum Transfer::Outcome;
    while (queued() > 0 && !send_closed_) {
        const Transfer done = socket_.send(std::span(out_).subspan(sent_));
        if (done.outcome == would_block) return;
        if (done.outcome == some) sent_ += done.bytes;
        if (done.outcome == failed) send_closed_ = true;
    }
    out_.clear();
    sent_ = 0;
}

std::size_t Channel::missing_bytes() const {
    const auto head = header();
    if (!head.ok() || !head.value()) return smallest_read;
    const std::size_t whole = FrameHeader::bytes + head.value()->length;
    return std::max(smallest_read, whole - std::min(whole, unread().size()));
}

Channel::Input Channel::fill() {
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    const std::size_t held = in_.size();
    in_.resize(held + missing_bytes());
    const Transfer done = socket_.receive(std::span(in_).subspan(held));
    in_.resize(held + done.bytes);
    switch (done.outcome) {
        case Transfer::Outcome::some: return Input::some;
        case Transfer::Outcome::would_block: return Input::nothing;
        case Transfer::Outcome::end:
        case Transfer::Outcome::failed: break;
    }
    return Input::end;
}

Result<std::optional<FrameHeader>> Channel::header() const {
    const auto bytes = unread();
    if (bytes.size() < FrameHeader::bytes) return std::optional<FrameHeader>{};
    auto parsed = FrameHeader::parse(bytes.first<FrameHeader::bytes>());
    if (!parsed.ok()) return parsed.status();
    if (parsed.value().length > longest_payload_)
        return protocol_error(
            fmt::format("a frame of {} bytes exceeds the limit of {} bytes", parsed.value().length, longest_payload_));
    return std::optional(parsed.value());
}

Result<std::optional<Frame>> Channel::peek() const {
    auto head = header();
    if (!head.ok()) return head.status();
    if (!head.value()) return std::optional<Frame>{};
    const auto rest = unread().subspan(FrameHeader::bytes);
    if (rest.size() < head.value()->length) return std::optional<Frame>{};
    const auto payload = rest.first(head.value()->length);
    return std::optional(Frame{head.value()->type, Buffer(payload.begin(), payload.end())});
}

Status Channel::verify(const FrameHeader& header, std::span<const std::byte> payload) const {
    if (header.session != session_)
        return protocol_error(fmt::format("a frame belongs to session {}, not to {}", header.session, session_));
    if (header.sequence != receive_sequence_)
        return protocol_error(
            fmt::format("expected frame {1}, received frame {0}", header.sequence, receive_sequence_));
    if (!receive_key_) {
        const bool greeting = header.type == FrameType::hello || header.type == FrameType::challenge;
        return greeting ? Status{} : protocol_error("a frame arrived before the handshake was complete");
    }
    if (!equal_in_constant_time(sign(*receive_key_, header, payload), header.tag))
        return protocol_error("a frame is not signed with this job's secret");
    return {};
}

Result<std::optional<Frame>> Channel::next() {
    auto frame = peek();
    if (!frame.ok() || !frame.value()) return frame;
    const auto head = header();  // complete, since peek() returned a frame
    if (Status verified = verify(*head.value(), frame.value()->payload); !verified.ok()) return verified;
    taken_ += FrameHeader::bytes + frame.value()->payload.size();
    ++receive_sequence_;
    return frame;
}

void Channel::finish() {
    flush();
    socket_.finish();
}

}  // namespace npushmem::rendezvous
