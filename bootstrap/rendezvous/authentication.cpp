// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/authentication.hpp"

#include <algorithm>

#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {
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
