#include "bootstrap/rendezvous/frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/rendezvous/byte_reader.hpp"
#include "bootstrap/rendezvous/limits.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::uint32_t frame_magic = 0x4255504eU;  // "NPUB" as it stands on the wire

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
        return Status{Code::protocol, "the bytes are no frame of this protocol"};
    const auto version = in.integer<std::uint16_t>();
    if (version != protocol_version)
        return Status{Code::unsupported,
                      fmt::format("it speaks version {} of the bootstrap protocol, this library version {}", version,
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

}  // namespace npushmem::rendezvous
