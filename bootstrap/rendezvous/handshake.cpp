#include "bootstrap/rendezvous/handshake.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {

Status fill_random(std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got = ::getrandom(out.data(), out.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return {Code::system, fmt::format("cannot get random bytes: {}", std::strerror(errno))};
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

namespace {

// One half of the secret keys the hash; the other half is hashed with the other inputs.
SipKey derive(const Credentials& credentials, std::uint8_t direction, std::span<const std::byte> context) {
    SipKey key{};
    const std::span secret(credentials.secret);
    std::ranges::copy(secret.first(key.size()), key.begin());
    SipHash128 hash(key);
    hash.update(secret.subspan(key.size()));
    hash.update(std::array{std::byte{direction}});
    hash.update(context);
    return hash.finish();
}

}  // namespace

Buffer Hello::encode() const { return ByteWriter().bytes(job).bytes(nonce).take(); }

std::optional<Hello> Hello::decode(std::span<const std::byte> payload) {
    Hello made;
    ByteReader in(payload);
    in.bytes(made.job);
    in.bytes(made.nonce);
    if (!in.complete()) return std::nullopt;
    return made;
}

ConnectionKeys derive_keys(const Credentials& credentials, std::uint32_t session, const Nonce& connector_nonce,
                           const Nonce& acceptor_nonce) {
    const Buffer context =
        ByteWriter().integer(session).bytes(credentials.job).bytes(connector_nonce).bytes(acceptor_nonce).take();
    return {derive(credentials, 1, context), derive(credentials, 2, context)};
}

}  // namespace npushmem::rendezvous
