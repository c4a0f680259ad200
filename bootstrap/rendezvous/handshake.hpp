// How two holders of the same credentials convince each other, and the keys that come out of it.
//
//   connector → acceptor   hello      job nonce, connector's nonce                       (no tag)
//   acceptor → connector   challenge  acceptor's nonce        tag under the acceptor's key of this connection
//   connector → acceptor   join/link  ...                     tag under the connector's key of this connection
//
// Each direction has its own key, made from the secret, both nonces and the session: a recorded frame fits no other
// connection, direction, session or place in the sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "bootstrap/rendezvous/byte_writer.hpp"
#include "bootstrap/rendezvous/credentials.hpp"
#include "bootstrap/rendezvous/siphash.hpp"

namespace npushmem::rendezvous {

struct Hello {
    Nonce job{};
    Nonce nonce{};

    [[nodiscard]] Buffer encode() const;
    static std::optional<Hello> decode(std::span<const std::byte> payload);
};

struct ConnectionKeys {
    SipKey connector;  // signs what the connecting side sends
    SipKey acceptor;   // signs what the accepting side sends
};

[[nodiscard]] ConnectionKeys derive_keys(const Credentials& credentials, std::uint32_t session,
                                         const Nonce& connector_nonce, const Nonce& acceptor_nonce);

}  // namespace npushmem::rendezvous
