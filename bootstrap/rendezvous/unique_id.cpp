// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/unique_id.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "bootstrap/rendezvous/authentication.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::string_view id_magic = "NPUSHUID";
constexpr std::uint16_t format_version = 1;
constexpr std::size_t checked_bytes = NPUSHMEM_UNIQUEID_BYTES - sizeof(SipTag);

// Hashes with a public key: a checksum, or the derivation from a password.
SipTag public_hash(std::uint8_t purpose, std::span<const std::byte> data) {
    SipKey key{};
    key[0] = std::byte{purpose};
    SipHash128 hash(key);
    hash.update(data);
    return hash.finish();
}

SipTag checksum(std::span<const std::byte> whole) { return public_hash(1, whole.first(checked_bytes)); }

Status refuse(const std::string& why) {
    return {Code::argument,
            "not a unique id: " + why + "; pass all 128 bytes of get_uniqueid, unchanged (as text: 256 hex digits)"};
}

}  // namespace

Result<UniqueId> UniqueId::make(const Address& service) {
    UniqueId made{service, {}, {}};
    if (Status random = fill_random(made.credentials.job); !random.ok()) return random;
    if (Status random = fill_random(made.credentials.secret); !random.ok()) return random;
    return made;
}

UniqueId UniqueId::from_session(const Address& service, const std::string& session, const std::string& password) {
    UniqueId made{service, {}, {}};
    const Buffer name = ByteWriter().text(session, 1024).take();
    const Buffer key = ByteWriter().text(session, 1024).text(password, 1024).take();
    made.credentials.job = public_hash(2, name);
    std::ranges::copy(public_hash(3, key), made.credentials.secret.begin());
    std::ranges::copy(public_hash(4, key), made.credentials.secret.begin() + sizeof(SipTag));
    return made;
}

UniqueIdBytes UniqueId::encode() const {
    ByteWriter out;
    out.bytes(std::as_bytes(std::span(id_magic))).integer(format_version);
    out.bytes(std::array<std::byte, 6>{});
    service.encode(out);
    out.bytes(credentials.job).bytes(credentials.secret);
    out.integer(memory.process).integer(memory.descriptor).integer(memory.device).integer(memory.inode);
    const Buffer body = out.take();
    UniqueIdBytes bytes{};
    std::ranges::copy(body, bytes.begin());
    std::ranges::copy(checksum(bytes), bytes.begin() + checked_bytes);
    return bytes;
}

Result<UniqueId> UniqueId::decode(std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> bytes) {
    ByteReader in(bytes);
    std::array<std::byte, id_magic.size()> found{};
    in.bytes(found);
    if (!std::ranges::equal(found, std::as_bytes(std::span(id_magic))))
        return refuse("it does not begin with the magic bytes");
    const auto version = in.integer<std::uint16_t>();
    if (version != format_version)
        return refuse(fmt::format("its format is {}, this library reads format {}", version, format_version));
    if (!std::ranges::equal(checksum(bytes), bytes.subspan(checked_bytes))) return refuse("its checksum is wrong");
    std::array<std::byte, 6> reserved{};
    in.bytes(reserved);
    UniqueId made;
    made.service = Address::decode(in);
    in.bytes(made.credentials.job);
    in.bytes(made.credentials.secret);
    made.memory.process = in.integer<std::int32_t>();
    made.memory.descriptor = in.integer<std::int32_t>();
    made.memory.device = in.integer<std::uint64_t>();
    made.memory.inode = in.integer<std::uint64_t>();
    if (!made.service.given() || made.service.port() == 0) return refuse("it contains no address");
    return made;
}

Result<UniqueId> UniqueId::decode_hex(const std::string& digits) {
    UniqueIdBytes bytes{};
    if (digits.size() != 2 * bytes.size())
        return refuse(fmt::format("the text has {} characters instead of {}", digits.size(), 2 * bytes.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::uint8_t value = 0;
        const char* const from = digits.data() + 2 * i;
        const auto parsed = std::from_chars(from, from + 2, value, 16);
        if (parsed.ptr != from + 2) return refuse(fmt::format("character {} is not a hex digit", 2 * i + 1));
        bytes[i] = std::byte{value};
    }
    return decode(bytes);
}

}  // namespace npushmem::rendezvous
