// A range of addresses, such as 10.1.0.0/16, of which a port's is to be one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem::verbs {

class GidRange {
public:
    // "10.1.0.0/16", "2001:db8::/32", or an address alone. The error says what is accepted.
    static Result<GidRange> parse(const std::string& text);

    // An IPv4 address is as GIDs have it, ::ffff:10.1.2.3.
    [[nodiscard]] bool has(std::span<const std::uint8_t, 16> gid) const;
    // Is this the address that the range was written with?
    [[nodiscard]] bool begins_with(std::span<const std::uint8_t, 16> gid) const {
        return std::equal(first_.begin(), first_.end(), gid.begin());
    }
    [[nodiscard]] unsigned bits() const { return bits_; }  // of 128
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
    std::array<std::uint8_t, 16> first_{};
    unsigned bits_ = 0;  // that count
};

}  // namespace npushmem::verbs
