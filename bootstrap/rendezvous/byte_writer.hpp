// Appends values to a buffer in the byte order of the wire (little endian), whatever the machine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace npushmem::rendezvous {

using Buffer = std::vector<std::byte>;

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

    // A 16-bit length and at most `limit` characters; what is longer is cut.
    ByteWriter& text(std::string_view value, std::size_t limit) {
        value = value.substr(0, limit);
        integer(static_cast<std::uint16_t>(value.size()));
        return bytes(std::as_bytes(std::span(value)));
    }

    [[nodiscard]] Buffer take() { return std::move(out_); }

private:
    Buffer out_;
};

}  // namespace npushmem::rendezvous
