// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/sip_hash.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace npushmem {
namespace {

constexpr std::size_t word_bytes = 8;

// The words of the hash are little-endian.
constexpr std::uint64_t little_endian(std::uint64_t word) {
    return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

std::uint64_t load_word(const std::byte* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return little_endian(word);
}

void store_word(std::uint64_t word, std::byte* to) {
    word = little_endian(word);
    std::memcpy(to, &word, sizeof word);
}

}  // namespace

SipHash128::SipHash128(const SipKey& key)
    : state_{load_word(key.data()) ^ 0x736f6d6570736575U,
             load_word(key.data() + word_bytes) ^ 0x646f72616e646f6dU ^ 0xeeU,
             load_word(key.data()) ^ 0x6c7967656e657261U, load_word(key.data() + word_bytes) ^ 0x7465646279746573U} {}

inline void SipHash128::State::round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32) + v3;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
}

inline void SipHash128::State::compress(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
}

void SipHash128::State::rounds(int count) {
    for (int i = 0; i < count; ++i) round();
}

void SipHash128::update(std::span<const std::byte> data) {
    const std::size_t held = length_ % word_bytes;
    length_ += data.size();
    State state = state_;  // a copy in registers: the input could alias members
    if (held != 0) {
        const std::size_t taken = std::min(word_bytes - held, data.size());
        std::copy_n(data.begin(), taken, tail_.begin() + static_cast<std::ptrdiff_t>(held));
        data = data.subspan(taken);
        if (held + taken < word_bytes) return;
        state.compress(load_word(tail_.data()));
    }
    for (; data.size() >= word_bytes; data = data.subspan(word_bytes)) state.compress(load_word(data.data()));
    state_ = state;
    std::copy(data.begin(), data.end(), tail_.begin());
}

SipTag SipHash128::finish() {
    std::fill(tail_.begin() + static_cast<std::ptrdiff_t>(length_ % word_bytes), tail_.end(), std::byte{0});
    tail_.back() = static_cast<std::byte>(length_);
    state_.compress(load_word(tail_.data()));
    SipTag tag{};
    state_.v2 ^= 0xeeU;
    state_.rounds(4);
    store_word(state_.folded(), tag.data());
    state_.v1 ^= 0xddU;
    state_.rounds(4);
    store_word(state_.folded(), tag.data() + word_bytes);
    return tag;
}

bool equal_in_constant_time(std::span<const std::byte, 16> a, std::span<const std::byte, 16> b) {
    std::byte difference{0};
    for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
    return difference == std::byte{0};
}

Status fill_random(std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got = ::getrandom(out.data(), out.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return {Code::system, fmt::format("cannot get random bytes: {}", std::strerror(errno))};
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

}  // namespace npushmem
