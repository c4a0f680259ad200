// SPDX-License-Identifier: BSD-3-Clause
// Authentication: the handshake, in which both sides prove that they know the secret of the unique id, and the keys
// that sign their frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"
#include "core/base/sip_hash.hpp"

namespace npushmem::rendezvous {

// The credentials in a unique id: the public name of the job and the secret that proves membership.
using Nonce = std::array<std::byte, 16>;
using Secret = std::array<std::byte, 32>;

struct Credentials {
    Nonce job{};      // crosses the wire: distinguishes jobs of one service
    Secret secret{};  // never crosses the wire
};

// Two holders of the same credentials authenticate each other and derive keys:
//
//   connector → acceptor   hello      job nonce, connector's nonce                       (no tag)
//   acceptor → connector   challenge  acceptor's nonce        tag under the acceptor's key of this connection
//   connector → acceptor   join/link  ...                     tag under the connector's key of this connection
//
// Each direction has its own key, derived from the secret, both nonces and the session: a recorded frame is not valid
// in any other connection, direction, session or position of the sequence.
struct Hello {
    Nonce job{};
    Nonce nonce{};

    [[nodiscard]] Buffer encode() const;
    static std::optional<Hello> decode(std::span<const std::byte> payload);
};

struct ConnectionKeys {
    SipKey connector;  // signs the frames of the connecting side
    SipKey acceptor;   // signs the frames of the accepting side
};

[[nodiscard]] ConnectionKeys derive_keys(const Credentials& credentials, std::uint32_t session,
                                         const Nonce& connector_nonce, const Nonce& acceptor_nonce);

}  // namespace npushmem::rendezvous
