// SPDX-License-Identifier: BSD-3-Clause
// Authentication: the keyed hash that signs frames, and the handshake, in which both sides prove that they know the
// secret of the unique id.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

using SipKey = std::array<std::byte, 16>;
using SipTag = std::array<std::byte, 16>;

// SipHash-2-4 with 128-bit output: a keyed hash that is fast on short messages. Here it authenticates messages and
// derives keys; it does not encrypt. Call update() any number of times, then finish() once. One thread.
class SipHash128 {
public:
    explicit SipHash128(const SipKey& key);

    void update(std::span<const std::byte> data);
    [[nodiscard]] SipTag finish();

private:
    struct State {
        std::uint64_t v0, v1, v2, v3;

        void round();
        void rounds(int count);
        void compress(std::uint64_t word);
        [[nodiscard]] std::uint64_t folded() const { return v0 ^ v1 ^ v2 ^ v3; }
    };

    State state_;
    std::array<std::byte, 8> tail_{};  // the bytes that do not fill a word yet: length_ % 8 of them
    std::uint64_t length_ = 0;
};

// Compares in constant time.
[[nodiscard]] bool equal_in_constant_time(std::span<const std::byte, 16> a, std::span<const std::byte, 16> b);

// Random bytes for secrets and nonces.

// Fills the bytes from the kernel's generator; waits until it is seeded (early boot only).
Status fill_random(std::span<std::byte> out);

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
