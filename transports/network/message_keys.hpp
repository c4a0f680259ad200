// SPDX-License-Identifier: BSD-3-Clause
// Authenticates messages: proves that a PE of this job has sent them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/sip_hash.hpp"
#include "transports/network/message.hpp"

namespace npushmem::network {

// Returns the tag of a message, the bytes of `head` and `rest` together, under the key of its receiver. It covers the
// size and the first bytes, which are the whole message except long payloads: a sender without the key cannot produce
// any message. The place of the tag in the header counts as zero.
std::uint64_t tag_of(const SipKey& key, std::span<const std::byte> head, std::span<const std::byte> rest);

// Every PE generates a key, which it publishes in its address and in its hello. The senders of messages to a PE sign
// them with the key of that PE. The transport's lock guards it.
class MessageKeys {
public:
    explicit MessageKeys(int npes);

    // Not ok: the kernel has no random bytes.
    [[nodiscard]] const Status& status() const { return status_; }
    [[nodiscard]] const SipKey& own() const { return own_; }
    void set(int pe, const SipKey& key) { peers_[static_cast<std::size_t>(pe)] = key; }

    // Returns the head with the tag for this PE, which is the header's. The PE's key must be set, and the head must
    // have the size of a header at least. The result is valid until the next call.
    std::span<const std::byte> sign(int pe, std::span<const std::byte> head, std::span<const std::byte> rest);
    // True if a PE of this job has sent the message to this PE.
    [[nodiscard]] bool is_authentic(std::span<const std::byte> message) const;

private:
    SipKey own_{};
    Status status_;
    std::vector<std::optional<SipKey>> peers_;
    std::vector<std::byte> signed_head_;  // kept for its memory
};

}  // namespace npushmem::network
