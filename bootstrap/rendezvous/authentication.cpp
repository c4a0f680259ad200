// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/authentication.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::size_t word_bytes = 8;

std::uint64_t load(const std::byte* from) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < word_bytes; ++i) word |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return word;
}

void store(std::uint64_t word, std::byte* to) {
    for (std::size_t i = 0; i < word_bytes; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

}  // namespace

SipHash128::SipHash128(const SipKey& key)
    : state_{load(key.data()) ^ 0x736f6d6570736575U, load(key.data() + word_bytes) ^ 0x646f72616e646f6dU ^ 0xeeU,
             load(key.data()) ^ 0x6c7967656e657261U, load(key.data() + word_bytes) ^ 0x7465646279746573U} {}

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
        state.compress(load(tail_.data()));
    }
    for (; data.size() >= word_bytes; data = data.subspan(word_bytes)) state.compress(load(data.data()));
    state_ = state;
    std::copy(data.begin(), data.end(), tail_.begin());
}

SipTag SipHash128::finish() {
    std::fill(tail_.begin() + static_cast<std::ptrdiff_t>(length_ % word_bytes), tail_.end(), std::byte{0});
    tail_.back() = static_cast<std::byte>(length_);
    state_.compress(load(tail_.data()));
    SipTag tag{};
    state_.v2 ^= 0xeeU;
    state_.rounds(4);
    store(state_.folded(), tag.data());
    state_.v1 ^= 0xddU;
    state_.rounds(4);
    store(state_.folded(), tag.data() + word_bytes);
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
