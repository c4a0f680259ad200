// SPDX-License-Identifier: BSD-3-Clause
// The keyed hash that authenticates messages, and the random bytes of keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

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

// Fills the bytes from the kernel's generator; waits until it is seeded (early boot only).
Status fill_random(std::span<std::byte> out);

}  // namespace npushmem
