#include "transports/verbs/gid_range.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse.hpp"

namespace npushmem::verbs {
namespace {

constexpr unsigned gid_bits = 128;
constexpr unsigned ipv4_bits = 32;

}  // namespace

Result<GidRange> GidRange::parse(const std::string& text) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::string address = text.substr(0, slash);
    GidRange out;
    out.text_ = text;
    std::array<std::uint8_t, 4> ipv4{};
    const bool is_ipv4 = ::inet_pton(AF_INET, address.c_str(), ipv4.data()) == 1;
    const unsigned max_bits = is_ipv4 ? ipv4_bits : gid_bits;
    const auto given =
        slash == text.size() ? Result<std::int64_t>(max_bits) : parse_integer(text.substr(slash + 1), 0, max_bits);
    if ((!is_ipv4 && ::inet_pton(AF_INET6, address.c_str(), out.first_.data()) != 1) || !given.ok())
        return Status{Code::config,
                      fmt::format("'{}' is no range of addresses such as 10.1.0.0/16 or 2001:db8::/32", text)};
    out.bits_ = gid_bits - max_bits + static_cast<unsigned>(given.value());
    if (!is_ipv4) return out;
    out.first_[10] = out.first_[11] = 0xff;
    std::copy(ipv4.begin(), ipv4.end(), out.first_.begin() + 12);
    return out;
}

bool GidRange::has(std::span<const std::uint8_t, 16> gid) const {
    constexpr unsigned byte_bits = 8;
    const std::size_t whole = bits_ / byte_bits;
    if (!std::equal(first_.begin(), first_.begin() + static_cast<std::ptrdiff_t>(whole), gid.begin())) return false;
    const unsigned rest = bits_ % byte_bits;
    return rest == 0 || (first_[whole] ^ gid[whole]) >> (byte_bits - rest) == 0;
}

}  // namespace npushmem::verbs
