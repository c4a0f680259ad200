// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_settings.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

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
                      fmt::format("'{}' is not an address range such as 10.1.0.0/16 or 2001:db8::/32", text)};
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

namespace {

// Reads variables and keeps the first error.
class Reader {
public:
    explicit Reader(const Host& host) : host_(host) {}

    template <class Number>
    void integer(const char* name, std::int64_t low, std::int64_t high, Number& into) {
        const auto parsed = parse_integer(text(name, std::to_string(into)), low, high);
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = static_cast<Number>(parsed.value());
    }
    // Reads one of `words`, in any case, as its index.
    template <std::size_t count>
    void word(const char* name, const std::array<const char*, count>& words, std::size_t& into) {
        const std::string given = lowercase(text(name, words[into]));
        for (std::size_t i = 0; i < count; ++i)
            if (given == lowercase(words[i])) {
                into = i;
                return;
            }
        fail(name, fmt::format("'{}' is invalid; expected one of: {}", given, fmt::join(words, ", ")));
    }
    void boolean(const char* name, bool& into) {
        const auto parsed = parse_bool(text(name, into ? "1" : "0"));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = parsed.value();
    }
    void size(const char* name, std::uint64_t low, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        if (parsed.value().value < low || !std::has_single_bit(parsed.value().value))
            return fail(name, fmt::format("{} is not a power of two of at least {}", format_size(parsed.value().value),
                                          format_size(low)));
        into = parsed.value().value;
    }
    void any_size(const char* name, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = parsed.value().value;
    }
    // Also accepts 0.
    void size_or_none(const char* name, std::uint64_t low, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (parsed.ok() && parsed.value().value == 0)
            into = 0;
        else
            size(name, low, into);
    }
    void fail(const char* name, const std::string& why) {
        if (status_.ok()) status_ = {Code::config, fmt::format("NPUSHMEM_{}: {}", name, why)};
    }
    [[nodiscard]] std::string text(const char* name, const std::string& otherwise) const {
        return host_.config(name, otherwise);
    }
    [[nodiscard]] const Status& status() const { return status_; }

private:
    const Host& host_;
    Status status_;
};

void read_pkey(Reader& reader, std::uint16_t& into) {
    const std::string given = reader.text("IB_PKEY", "0");
    char* end = nullptr;
    const unsigned long value = std::strtoul(given.c_str(), &end, 0);
    const bool begins_with_digit = !given.empty() && given.front() >= '0' && given.front() <= '9';
    if (!begins_with_digit || *end != '\0' || value > 0xffff)
        return reader.fail("IB_PKEY",
                           fmt::format("'{}' is not a partition key; expected 0x0001 to 0xffff, or 0 for the "
                                       "port's first",
                                       given));
    into = static_cast<std::uint16_t>(value);
}

void read_range(Reader& reader, std::optional<GidRange>& into) {
    const std::string given = reader.text("IB_ADDR_RANGE", "");
    // Other programs use ::/0 for any address, of either family.
    if (given.empty() || given == "::/0") return;
    auto parsed = GidRange::parse(given);
    if (!parsed.ok()) return reader.fail("IB_ADDR_RANGE", parsed.status().message());
    into = std::move(parsed).value();
}

void read_mtu(Reader& reader, int& into) {
    reader.integer("IB_MTU", 0, 4096, into);
    if (into != 0 && (into < 256 || !std::has_single_bit(static_cast<unsigned>(into))))
        reader.fail("IB_MTU", fmt::format("{} is invalid; expected one of: 0, 256, 512, 1024, 2048, 4096", into));
}

NativeAtomics read_atomics(Reader& reader) {
    bool disabled = false;
    reader.boolean("DISABLE_IB_NATIVE_ATOMICS", disabled);
    std::size_t chosen = 0;
    reader.word("IB_NATIVE_ATOMICS", std::array{"auto", "always"}, chosen);
    if (disabled) return NativeAtomics::never;
    return chosen == 0 ? NativeAtomics::if_coherent : NativeAtomics::always;
}

}  // namespace

Result<VerbsSettings> read_verbs_settings(const Host& host) {
    Reader reader(host);
    VerbsSettings out;
    reader.integer("IB_GID_INDEX", -1, 255, out.gid_index);
    reader.integer("IB_ROCE_VERSION_NUM", 1, 2, out.roce_version);
    std::size_t family = 0;
    reader.word("IB_ADDR_FAMILY", std::array{"AF_INET", "AF_INET6"}, family);
    out.family = family == 0 ? AddressFamily::ipv4 : AddressFamily::ipv6;
    read_range(reader, out.range);
    reader.integer("IB_SL", 0, 15, out.service_level);
    reader.integer("IB_TRAFFIC_CLASS", 0, 255, out.traffic_class);
    read_pkey(reader, out.pkey);
    read_mtu(reader, out.mtu);
    reader.integer("IB_RETRY_COUNT", 0, 7, out.retry_count);
    reader.integer("IB_TIMEOUT", 1, 31, out.timeout);
    reader.integer("QP_DEPTH", 16, 65536, out.queue_depth);
    reader.size("VERBS_REGISTER_CHUNK", 4096, out.chunk_bytes);
    reader.size_or_none("VERBS_STRIPE_BYTES", 4096, out.stripe_bytes);
    reader.any_size("VERBS_REGISTRATION_CACHE", out.cache_bytes);
    out.atomics = read_atomics(reader);
    if (!reader.status().ok()) return reader.status();
    auto rails = parse_nic_rails(host.config("NIC_RAILS", ""));
    if (!rails.ok()) return rails.status();
    out.nic_rails = std::move(rails).value();
    return out;
}

namespace {

bool is_ipv4(const ibv_gid& gid) {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, mapped.data(), mapped.size()) == 0;
}

const char* name_of_type(std::uint32_t type) {
    switch (type) {
        case IBV_GID_TYPE_IB: return "InfiniBand";
        case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
        case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
        default: return "unknown";
    }
}

std::string list(std::span<const ibv_gid_entry> table) {
    std::string out;
    for (const auto& entry : table) out += (out.empty() ? "" : ", ") + text_of(entry);
    return out.empty() ? "none" : out;
}

Result<ibv_gid_entry> by_index(std::span<const ibv_gid_entry> table, int index) {
    const auto found = std::find_if(table.begin(), table.end(), [index](const ibv_gid_entry& entry) {
        return entry.gid_index == static_cast<std::uint32_t>(index);
    });
    if (found != table.end()) return *found;
    return Status{Code::config,
                  fmt::format("NPUSHMEM_IB_GID_INDEX={}: the port has no such address; it has {}", index, list(table))};
}

}  // namespace

std::string text_of(const ibv_gid& gid) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size()) != nullptr ? text.data() : "?";
}

std::string short_text_of(const ibv_gid& gid) {
    constexpr std::string_view prefix = "::ffff:";
    const std::string text = text_of(gid);
    return is_ipv4(gid) && text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

std::string text_of(const ibv_gid_entry& entry) {
    return fmt::format("{}: {} {}", entry.gid_index, name_of_type(entry.gid_type), text_of(entry.gid));
}

Result<ibv_gid_entry> choose_gid(std::span<const ibv_gid_entry> table, bool ethernet, const VerbsSettings& settings) {
    if (settings.gid_index >= 0) return by_index(table, settings.gid_index);
    if (!ethernet) return by_index(table, 0);
    const std::uint32_t type = settings.roce_version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    const bool want_ipv4 = settings.family == AddressFamily::ipv4;
    const ibv_gid_entry* best = nullptr;
    for (const auto& entry : table) {
        const bool wanted = settings.range ? settings.range->has(entry.gid.raw) : is_ipv4(entry.gid) == want_ipv4;
        if (entry.gid_type != type || !wanted) continue;
        // Routers do not forward link-local addresses.
        if (best == nullptr || (is_link_local(best->gid) && !is_link_local(entry.gid))) best = &entry;
    }
    if (best != nullptr) return *best;
    const std::string which = settings.range ? "in NPUSHMEM_IB_ADDR_RANGE=" + settings.range->text()
                              : want_ipv4    ? "and IPv4"
                                             : "and IPv6";
    return Status{Code::config,
                  fmt::format("the port has no address of RoCE v{} {}, but {}; NPUSHMEM_IB_ROCE_VERSION_NUM, "
                              "NPUSHMEM_IB_ADDR_FAMILY or NPUSHMEM_IB_GID_INDEX choose another",
                              settings.roce_version, which, list(table))};
}

}  // namespace npushmem::verbs
