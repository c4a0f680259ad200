// SPDX-License-Identifier: BSD-3-Clause
// Writer and reader of byte formats: little endian on every machine, with bounds checks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace npushmem {

using Buffer = std::vector<std::byte>;

// Appends values to a buffer.
class ByteWriter {
public:
    template <class Integer>
    ByteWriter& integer(Integer value) {
        using Unsigned = std::make_unsigned_t<Integer>;
        for (std::size_t i = 0; i < sizeof value; ++i)
            out_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(static_cast<Unsigned>(value)) >> (8 * i)));
        return *this;
    }

    ByteWriter& bytes(std::span<const std::byte> data) {
        out_.insert(out_.end(), data.begin(), data.end());
        return *this;
    }

    // Writes a 16-bit length and at most `limit` characters; longer text is truncated.
    ByteWriter& text(std::string_view value, std::size_t limit) {
        value = value.substr(0, limit);
        integer(static_cast<std::uint16_t>(value.size()));
        return bytes(std::as_bytes(std::span(value)));
    }

    [[nodiscard]] Buffer take() { return std::move(out_); }

private:
    Buffer out_;
};

// Reads the format of ByteWriter. Reading past the end returns zeros and makes ok() false: callers read everything,
// then check once.
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> data) : rest_(data) {}

    template <class Integer>
    Integer integer() {
        std::uint64_t value = 0;
        const auto from = take(sizeof(Integer));
        for (std::size_t i = 0; i < from.size(); ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
        return static_cast<Integer>(value);
    }

    void bytes(std::span<std::byte> to) {
        const auto from = take(to.size());
        std::copy(from.begin(), from.end(), to.begin());
    }

    std::string text(std::size_t limit) {
        const auto length = integer<std::uint16_t>();
        if (length > limit) ok_ = false;
        const auto from = take(std::min<std::size_t>(length, limit));
        return {reinterpret_cast<const char*>(from.data()), from.size()};
    }

    // A 32-bit number of elements that follow. Fails unless as many elements of `min_bytes` bytes or more fit into the
    // rest, so that a caller can allocate memory for them.
    std::size_t count(std::size_t min_bytes) {
        const std::size_t elements = integer<std::uint32_t>();
        if (elements * min_bytes <= rest_.size()) return elements;
        fail();
        return 0;
    }

    // The next bytes, without a copy; none if fewer are left.
    std::span<const std::byte> take(std::size_t size) {
        if (size > rest_.size()) {
            fail();
            return {};
        }
        const auto taken = rest_.first(size);
        rest_ = rest_.subspan(size);
        return taken;
    }

    // For a value that the caller rejects: later reads fail too.
    void fail() {
        ok_ = false;
        rest_ = {};
    }

    [[nodiscard]] bool ok() const { return ok_; }
    // All bytes were present, and none is left.
    [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

private:
    std::span<const std::byte> rest_;
    bool ok_ = true;
};

}  // namespace npushmem
