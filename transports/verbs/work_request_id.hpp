// The number by which a work request's completion is known: what it was, and which.
#pragma once

#include <cstdint>

namespace npushmem::verbs {

//     | kind 8 | connection 24 | sequence or index 32 |
struct WorkRequestId {
    enum class Kind : std::uint8_t { post = 1, receive, handshake_send, handshake_receive };
    Kind kind;
    std::uint32_t connection = 0;  // which of the wire's
    std::uint32_t which = 0;

    [[nodiscard]] std::uint64_t packed() const {
        return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(connection) << 32 | which;
    }
    static WorkRequestId of(std::uint64_t packed) {
        return {static_cast<Kind>(packed >> 56), static_cast<std::uint32_t>(packed >> 32 & 0xffffffU),
                static_cast<std::uint32_t>(packed)};
    }
};

}  // namespace npushmem::verbs
