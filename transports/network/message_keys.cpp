// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/message_keys.hpp"

#include <algorithm>
#include <cstring>

namespace npushmem::network {
namespace {

constexpr std::size_t signed_bytes = 64;  // at most
constexpr std::size_t tag_offset = offsetof(MessageHeader, tag);

std::uint64_t tag_in(std::span<const std::byte> message) {
    std::uint64_t tag = 0;
    std::memcpy(&tag, message.data() + tag_offset, sizeof tag);
    return tag;
}

}  // namespace

std::uint64_t tag_of(const SipKey& key, std::span<const std::byte> head, std::span<const std::byte> rest) {
    std::array<std::byte, sizeof(std::uint64_t) + signed_bytes> input;
    const std::uint64_t size = head.size() + rest.size();
    std::memcpy(input.data(), &size, sizeof size);
    std::size_t used = sizeof size;
    for (const auto part : {head, rest}) {
        const std::size_t taken = std::min(part.size(), input.size() - used);
        if (taken > 0) std::memcpy(input.data() + used, part.data(), taken);
        used += taken;
    }
    std::memset(input.data() + sizeof size + tag_offset, 0, sizeof(std::uint64_t));
    SipHash128 hash(key);
    hash.update(std::span(input).first(used));
    const SipTag whole = hash.finish();
    std::uint64_t tag = 0;
    std::memcpy(&tag, whole.data(), sizeof tag);
    return tag;
}

MessageKeys::MessageKeys(int npes) : status_(fill_random(own_)), peers_(static_cast<std::size_t>(std::max(npes, 1))) {}

std::span<const std::byte> MessageKeys::sign(int pe, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::uint64_t tag = tag_of(*peers_[static_cast<std::size_t>(pe)], head, rest);
    signed_head_.assign(head.begin(), head.end());
    std::memcpy(signed_head_.data() + tag_offset, &tag, sizeof tag);
    return signed_head_;
}

// The comparison takes constant time: it is one instruction.
bool MessageKeys::is_authentic(std::span<const std::byte> message) const {
    return message.size() >= sizeof(MessageHeader) && tag_in(message) == tag_of(own_, message, {});
}

}  // namespace npushmem::network
